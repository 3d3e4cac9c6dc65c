// Forward of the chunked gated delta rule on Hopper. The dialect is described in dialects/tile/Tile.td.
//
// S [K,V] the state, G the cumulative gate of a chunk (log2), a = 2^(G_C - G) kept above 2^floor, b = a 2^G. The gates leave the products:
//   T = (I + strict_tril(beta_i k_i.k_j))^-1 diag(beta)    P = scale/a_i tril(q_i.k_j)    W = a V - b K S    U = T W
//   O = scale 2^G (Q S) + P U    S' = 2^G_C S + K^T U
// With l2norm K and Q stay as they are. 1/|k_i| scales row i of A, beta and b: T and U carry it; 1/|q_i| scales row i of P and of scale 2^G.
// The state is kept transposed in registers: a copy of role @state owns `rows` rows of S^T for the whole sequence,
// and the left operand of every product on its chain is the previous accumulator, converted in place.
//
// Order of the data: global -> @aux -> kq, gates, v, t, p -> @state -> global. The copies of @aux take the chunks by turns.
//
// An item is a head of a sequence, or a piece of one (runtime/format/work.h): it takes its state from a slot that another
// item has filled, or makes states of what others have made of segments in between (a hop, S' = M S + N), or starts some
// chunks early for the state alone, and leaves its state to others.

// What the roles hold in registers (rows = V rows of one state copy).
!state  = !tile.frag<[rows, K], f32>        // S^T
!stateh = !tile.frag<[rows, K], io>
!acc    = !tile.frag<[rows, chunk], f32>    // (K S)^T, W^T, U^T, O^T
!acch   = !tile.frag<[rows, chunk], io>
!part   = !tile.frag<[chunk, rows], f32>    // columns of the state, as many as a slot of O holds
!wh     = !tile.frag<[rows, chunk], tw>
!sq     = !tile.frag<[chunk, chunk], f32>   // K K^T, Q K^T, P
!sqh    = !tile.frag<[chunk, chunk], f16>
!blk    = !tile.frag<[chunk, 16], f32>      // one block diagonal of a [chunk, chunk] matrix
!blkh   = !tile.frag<[chunk, 16], f16>
!row    = !tile.frag<[1, chunk], f32>       // one value a token, broadcast down the rows
!bits   = !tile.frag<[1, chunk], any>       // the same as it was loaded
!col    = !tile.frag<[chunk, 1], f32>
!one    = !tile.frag<[1, 1], f32>

// What lies in shared memory.
!kb   = !tile.buf<[chunk, K], io>
!vb   = !tile.buf<[chunk, V / split], io>
!vh   = !tile.buf<[chunk, rows], io>
!tb   = !tile.buf<[chunk, chunk], tw>
!pb   = !tile.buf<[chunk, chunk], io>
!bb   = !tile.buf<[chunk, 16], f16>
!rowb = !tile.buf<[1, chunk], f32>

// The rings.
!kq    = !tile.ring<!kb, !kb>                                          // K, Q
!v     = !tile.ring<!vb>                                               // V
!gates = !tile.ring<!rowb, !rowb, !rowb, !rowb, !rowb, !rowb>          // a, b, scale 2^G, 1/a, left, beta
!t     = !tile.ring<!tb>                                               // T
!p     = !tile.ring<!pb>                                               // P
!out   = !tile.ring<!vh>                                               // O

// What lies in global memory.
!qv   = !tile.view<[?, ?, K], io>           // [tokens, heads, K]
!vv   = !tile.view<[?, ?, V], io>
!gv   = !tile.view<[?, ?], any>             // [tokens, v heads]
!hv   = !tile.view<[?], any>                // [v heads]
!sv   = !tile.view<[?, ?, V, K], any, unit v_first ? 3 : 2>   // [sequences, v heads, V, K]: which axis is contiguous
!slot = !tile.view<[?, V, K], f32, packed>  // states between items, [slots, V, K]
!mat  = !tile.view<[?, K], io>              // transitions, [matrices K, K]: M^T, its leading terms or what they leave out
!flag = !tile.view<[?, 8], i32>             // how often each 64 rows were stored: four of a slot, then of the matrix of that number; then guards
!clk  = !tile.view<[?, 24], i64>            // [blocks 16, what was stamped of an item, and of a chunk by each role]
!work = !tile.items<split, V / split>       // tokens, sequence, k head, v head, first V column; those of a piece, rows of the caller's states

tile.template @forward {
  // The operator's key.
  tile.param @K in [64, 96, 128]
  tile.param @V in [64, 128, 192]
  tile.param @chunk in [64] = 64
  tile.param @io in [bf16, f16] = bf16
  tile.param @v_first in [0, 1] = 0          // layout of the states in global memory
  tile.param @l2norm in [0, 1] = 0           // normalise the rows of q and k
  tile.param @checkpoints in [0, 1] = 0      // store the states between chunks that the caller asks for
  tile.param @profile in [0, 1] = 0          // write clock stamps
  // Accuracy: T and W limit it, by their element type.
  tile.param @tw in [bf16, f16] = "io"
  // The schedule: chosen per target, never by the caller.
  tile.param @split in [1, 2, 3] = 1         // blocks that share one head's V
  tile.param @aux in [1, 2, 3] = 2           // chunks in work ahead of the chain
  tile.param @kq_depth = 4
  tile.param @v_depth = 2
  tile.param @gates_depth = 3
  tile.param @t_depth = 2
  tile.param @out_depth = 1
  tile.param @state_regs = 192
  tile.param @aux_regs = 64

  tile.let @rows = 64
  tile.let @states = V / (split * rows)      // state warpgroups in a block
  tile.let @near = tw eq f16 or io eq f16    // W and U hold a, P holds 1/a: fp16 has not the range of 2^-100
  tile.let @floor = near ? -8 : -100
  tile.let @moves = K eq V and K mod 64 eq 0 // M is made by the code that makes N: as many rows
  tile.let @ahead = kq_depth ge aux + 1      // slots enough to bring a chunk before the one in work leaves its own
  tile.let @late = l2norm or profile         // no registers for gates from the start of a chunk on
  tile.let @parts = (K - K mod 64) / 64      // pieces of a matrix, as large as K and Q of a chunk
  tile.let @fine = io eq f16                 // A rounded to fp16 would be the largest error: the inverse takes it in two terms
  tile.let @v_warp = fine ? 0 : 1            // who loads V: not who makes the gates, if registers allow
  tile.require chunk mod 16 eq 0 else "the inverse works on 16x16 blocks"

  // t = (diag(1/beta) + strict_tril(A))^-1 by block diagonals: i is the blocks (w, w-i), warp w owns block row w.
  // With D the inverses of the diagonal blocks and E = -D A off the diagonal, t = (I + E + E^2 + E^3) D:
  // one exchange between warps, then products that depend on each other three deep.
  tile.proc @inverse(%Ah: !sqh, %Al: !sqh, %D: !blk, %t: !tb) {
    %d = tile.scratch : !bb
    %e1 = tile.scratch : !bb
    %e2 = tile.scratch : !bb
    %Dh = tile.convert %D : !blk to !blkh
    %Nh = tile.neg %Dh : !blkh
    %L1, %L2, %L3 = tile.if fine -> (!blk, !blk, !blk) {
      %x1 = tile.block_mma %Nh at 0, %Al at 1 : !blkh, !sqh
      %x2 = tile.block_mma %Nh at 0, %Al at 2 : !blkh, !sqh
      %x3 = tile.block_mma %Nh at 0, %Al at 3 : !blkh, !sqh
      tile.yield %x1, %x2, %x3 : !blk, !blk, !blk
    } else {
      %z = tile.fill 0.0 : !blk
      tile.yield %z, %z, %z : !blk, !blk, !blk
    }
    %E1 = tile.block_mma %Nh at 0, %Ah at 1 into %L1 : !blkh, !sqh into !blk   // own block row: in registers
    %E2 = tile.block_mma %Nh at 0, %Ah at 2 into %L2 : !blkh, !sqh into !blk
    %E3 = tile.block_mma %Nh at 0, %Ah at 3 into %L3 : !blkh, !sqh into !blk
    %E1h = tile.convert %E1 : !blk to !blkh
    %E2h = tile.convert %E2 : !blk to !blkh
    tile.write %Dh to %d : !blkh to !bb
    tile.write %E1h to %e1 : !blkh to !bb
    tile.write %E2h to %e2 : !blkh to !bb
    %Q2 = tile.block_mma %E1h at 1, %e1 at 1 into %E2 : !blkh, !bb into !blk   // the exchange: rows w-1, w-2, w-3 are read
    %Q3a = tile.block_mma %E1h at 1, %e2 at 2 into %E3 : !blkh, !bb into !blk
    %Q2h = tile.convert %Q2 : !blk to !blkh
    %Q3 = tile.block_mma %Q2h at 2, %e1 at 1 into %Q3a : !blkh, !bb into !blk
    %Q3h = tile.convert %Q3 : !blk to !blkh
    %T1 = tile.block_mma %E1h at 1, %d at 0 : !blkh, !bb
    %T2 = tile.block_mma %Q2h at 2, %d at 0 : !blkh, !bb
    %T3 = tile.block_mma %Q3h at 3, %d at 0 : !blkh, !bb
    tile.write_blocks %D to %t at 0 : !blk to !tb
    tile.write_blocks %T1 to %t at 1 : !blk to !tb
    tile.write_blocks %T2 to %t at 2 : !blk to !tb
    tile.write_blocks %T3 to %t at 3 : !blk to !tb
    tile.yield
  }

  // Where a chunk decays by more than the floor, what the floor left out stays as a gate: x_ij 2^(left_j - left_i), never above 1.
  tile.proc @gate_left(%x: !sq, %left: !rowb, %slow: i1) {
    %y = scf.if %slow -> (!sq) {
      %li = tile.read trans %left : !rowb
      %lj = tile.read %left : !rowb
      %d = tile.sub %lj, %li : !row, !col
      %dm = tile.lower %d below 0 else -1.0e30 : !sq                // before exp2: no exponent is positive
      %g = tile.exp2 %dm : !sq
      %xg = tile.mul %x, %g : !sq, !sq
      scf.yield %xg : !sq
    } else { scf.yield %x : !sq }
    tile.yield %y : !sq
  }

  // Whether b is not 2^G_C for all tokens of a chunk: where it is divided by norms, or a gate is clamped.
  tile.proc @b_varies(%left: !rowb) {
    %y = tile.if l2norm -> (i1) {
      %x = arith.constant true
      tile.yield %x : i1
    } else {
      %x = tile.any %left : !rowb
      tile.yield %x : i1
    }
    tile.yield %y : i1
  }

  tile.proc @right_side(%ks: !acc, %Vh: !acch, %at: !rowb, %bt: !rowb, %varies: i1) {
    %a = tile.read %at : !rowb
    %b = scf.if %varies -> (!row) {                                 // else one number: fewer bytes to read
      %x = tile.read %bt : !rowb
      scf.yield %x : !row
    } else {
      %x = tile.read %bt : !rowb
      %gamC = tile.last %x : !row
      %ones = tile.fill 1.0 : !row
      %y = tile.mul %ones, %gamC : !row, !one
      scf.yield %y : !row
    }
    %V = tile.convert %Vh : !acch to !acc
    %aV = tile.mul %V, %a : !acc, !row
    %bks = tile.mul %ks, %b : !acc, !row
    %W = tile.sub %aV, %bks : !acc, !acc
    %Wh = tile.convert %W : !acc to !wh
    tile.yield %Wh : !wh
  }

  // Log decay (log2) and beta from what the caller gave instead, by the bits of `options`: g is 1 the decay itself,
  // 2 the input of -exp(A_log) softplus(g + dt_bias); beta is 4 logits of a sigmoid, 8 to be doubled.
  tile.proc @as_given(%g: !row, %beta: !row, %options: i32, %A_log: !hv, %dt_bias: !hv, %vh: i32, %here: !tile.chunk) {
    %log2e = tile.fill 1.44269504 : !row
    %zero = tile.value 0 : i32
    %is_decay = tile.value 1 : i32
    %is_raw = tile.value 2 : i32
    %is_logit = tile.value 4 : i32
    %is_half = tile.value 8 : i32
    %o1 = arith.andi %options, %is_decay : i32
    %o2 = arith.andi %options, %is_raw : i32
    %o4 = arith.andi %options, %is_logit : i32
    %o8 = arith.andi %options, %is_half : i32
    %decay = arith.cmpi ne, %o1, %zero : i32
    %raw = arith.cmpi ne, %o2, %zero : i32
    %logit = arith.cmpi ne, %o4, %zero : i32
    %half = arith.cmpi ne, %o8, %zero : i32
    %g0 = scf.if %decay -> (!row) {
      %x = tile.log2 %g : !row
      scf.yield %x : !row
    } else {
      %x = tile.mul %g, %log2e : !row, !row
      scf.yield %x : !row
    }
    %g1 = scf.if %raw -> (!row) {
      %A = tile.load %A_log[%vh] : !hv to !one
      %dt = tile.load %dt_bias[%vh] : !hv to !one
      %log2e1 = tile.fill 1.44269504 : !one
      %x = tile.add %g, %dt : !row, !one
      %x2 = tile.mul %x, %log2e1 : !row, !one
      %sp = tile.softplus %x2 : !row
      %A2 = tile.mul %A, %log2e1 : !one, !one
      %rate = tile.exp2 %A2 : !one
      %fall = tile.neg %rate : !one
      %y = tile.mul %sp, %fall : !row, !one
      scf.yield %y : !row
    } else { scf.yield %g0 : !row }
    %b0 = scf.if %logit -> (!row) {
      %x = tile.sigmoid %beta : !row
      scf.yield %x : !row
    } else { scf.yield %beta : !row }
    %b1 = scf.if %half -> (!row) {
      %x = tile.add %b0, %b0 : !row, !row
      scf.yield %x : !row
    } else { scf.yield %b0 : !row }
    %g_out = tile.pad %g1 past %here : !row                         // the rows past a sequence's end were read as zeros
    %b_out = tile.pad %b1 past %here : !row
    tile.yield %g_out, %b_out : !row, !row
  }

  // By the warp that makes a chunk's gates of them.
  tile.proc @load_gates(%g_in: !gv, %beta_in: !gv, %vh: i32, %here: !tile.chunk) {
    %g, %beta = tile.one_warp -> (!bits, !bits) {
      %x = tile.load %g_in[%vh] at %here : !gv to !bits
      %y = tile.load %beta_in[%vh] at %here : !gv to !bits
      tile.yield %x, %y : !bits, !bits
    }
    tile.yield %g, %beta : !bits, !bits
  }

  // What a copy needs of its next chunk c, if there is one: gates, and K and Q, or, for the state alone, K. A warp each.
  tile.proc @prepare(%g_bits: !bits, %beta_bits: !bits, %c: i32, %n: i32, %span: !tile.span, %kh: i32, %vh: i32, %warm: i32, %from: i32,
                     %g_in: !gv, %beta_in: !gv, %k_in: !qv, %q_in: !qv, %A_log: !hv, %dt_bias: !hv,
                     %scale: f32, %options: i32, %gates: !gates, %kq: !kq) {
    %c0 = tile.value 0 : i32
    %identity = tile.value 0 - 3 : i32
    %log2e = tile.fill 1.44269504 : !row
    %exists = arith.cmpi slt, %c, %n : i32
    scf.if %exists {
      %here = tile.chunk %span[%c]
      %full = arith.cmpi sge, %c, %warm : i32
      tile.one_warp {
        %g = tile.widen %g_bits of %g_in : !bits, !gv
        %beta = tile.widen %beta_bits of %beta_in : !bits, !gv
        %plain = arith.cmpi eq, %options, %c0 : i32
        %g2, %beta2 = scf.if %plain -> (!row, !row) {
          %x = tile.mul %g, %log2e : !row, !row
          scf.yield %x, %beta : !row, !row
        } else {
          %x, %y = tile.call @as_given(%g, %beta, %options, %A_log, %dt_bias, %vh, %here)
            : (!row, !row, i32, !hv, !hv, i32, !tile.chunk) -> (!row, !row)
          scf.yield %x, %y : !row, !row
        }
        %G = tile.cumsum %g2 : !row
        %GC = tile.last %G : !row
        %la0 = tile.sub %GC, %G : !one, !row
        %la = tile.at_least %la0, floor : !row
        %left = tile.sub %la0, %la : !row, !row                 // 0 unless the chunk decays by more than the floor
        %a1 = tile.exp2 %la : !row
        %moves = arith.cmpi eq, %from, %identity : i32         // M is made without values
        %zero = tile.value 0 : f32
        %one = tile.value 1 : f32
        %by = arith.select %moves, %zero, %one : f32
        %a = tile.scale %a1 by %by : !row
        %gam = tile.exp2 %G : !row
        %b = tile.mul %a1, %gam : !row, !row
        %sgam = tile.scale %gam by %scale : !row
        %na = tile.neg %la : !row
        %ia0 = tile.exp2 %na : !row
        %ia = tile.scale %ia0 by %scale : !row
        tile.put %gates as (%at, %bt, %sgt, %iat, %lt, %betat) : !gates {
          tile.write %a to %at : !row to !rowb
          tile.write %b to %bt : !row to !rowb
          tile.write %sgam to %sgt : !row to !rowb
          tile.write %ia to %iat : !row to !rowb
          tile.write %left to %lt : !row to !rowb
          tile.write %beta2 to %betat : !row to !rowb
        }
      }
      tile.one_warp nth(1) {
        tile.put %kq as (%k, %q) : !kq {
          tile.copy_in %k_in[%kh] at %here to %k : !qv to !kb
          scf.if %full { tile.copy_in %q_in[%kh] at %here to %q : !qv to !kb }
        }
      }
    }
    tile.yield
  }

  // N and M of an item's hops in pieces as large as K and Q of a chunk: as many turns for each copy of @aux.
  tile.proc @pieces(%hops: i32) {
    %each = tile.value parts + 1 : i32
    %copies = tile.value aux : i32
    %pieces = arith.muli %hops, %each : i32
    %rounds = arith.ceildivsi %pieces, %copies : i32
    %turns = arith.muli %rounds, %copies : i32
    tile.yield %pieces, %turns : i32, i32
  }

  // Piece i, or the last one, as soon as it has been stored. It is not for the role that brings it.
  tile.proc @fetch(%i: i32, %pieces: i32, %segment: i32, %v0: i32, %slots: !slot, %m_hi: !mat, %m_lo: !mat, %flags: !flag, %kq: !kq) {
    %zero = tile.value 0 : i32
    %one = tile.value 1 : i32
    %three = tile.value 3 : i32
    %each = tile.value parts + 1 : i32
    %rows = tile.value rows : i32
    %rows_m = tile.value K : i32
    %rows_p = tile.value chunk : i32
    %half = tile.value K / 2 : i32
    tile.one_warp {
      %end = arith.subi %pieces, %one : i32
      %piece = arith.minsi %i, %end : i32
      %hop = arith.divsi %piece, %each : i32
      %part = arith.remsi %piece, %each : i32                       // N, then as many pieces of M
      %is_m = arith.cmpi sgt, %part, %zero : i32
      %slot = arith.addi %segment, %hop : i32
      %flag_n = arith.divsi %v0, %rows : i32
      %flag_m = arith.addi %part, %three : i32
      %flag = arith.select %is_m, %flag_m, %flag_n : i32
      %base = arith.muli %slot, %rows_m : i32
      %part_m = arith.subi %part, %one : i32
      %below = arith.muli %part_m, %rows_p : i32
      %row = arith.addi %base, %below : i32
      %there = tile.rows %row
      tile.await %flags[%slot, %flag] reaches %one : !flag
      tile.put unread %kq as (%x, %y) : !kq {
        scf.if %is_m {
          tile.copy_in %m_hi[] at %there to %x : !mat to !kb
          tile.copy_in %m_lo[] at %there to %y : !mat to !kb
        } else {
          tile.copy_in %slots[%slot, %v0, %zero] to %x : !slot to !kb
          tile.copy_in %slots[%slot, %v0, %half] to %y : !slot to !kb
        }
      }
    }
    tile.yield
  }

  tile.proc @let_pass(%kq: !kq) {
    %x, %y = tile.get %kq : !kq
    tile.release %kq : !kq
    tile.yield
  }

  // N + S M for 64 columns of S, a their leading terms and b what those leave out; M's rows of these columns.
  tile.proc @hop_onto(%N: !state, %a: !acch, %b: !acch, %hi: !kb, %lo: !kb) {
    %x_ = tile.mma %a, %lo into %N : !acch, !kb into !state
    %y_ = tile.mma %b, %hi into %x_ : !acch, !kb into !tile.pending<!state>
    %z_ = tile.mma %a, %hi into %y_ : !acch, !kb into !tile.pending<!state>
    %z = tile.wait %z_ : !tile.pending<!state>
    tile.yield %z : !state
  }

  // Columns of a matrix to global memory, from one on, by way of a slot of O.
  tile.proc @put_part(%x: !part, %out: !out, %to: !mat, %rows: !tile.chunk, %column: i32) {
    tile.put %out as (%t) : !out { tile.write %x to %t : !part to !vh }
    %s = tile.get %out : !out
    tile.copy_out %s to %to[%column] at %rows : !vh to !mat
    tile.release %out : !out
    tile.yield
  }

  // U as it goes into the state: what a near floor left out still counts there.
  tile.proc @kept(%U: !acc, %Uh: !acch, %left: !rowb) {
    %y = tile.if near -> (!acch) {
      %l = tile.read %left : !rowb
      %e = tile.exp2 %l : !row
      %Uk = tile.mul %U, %e : !acc, !row
      %x = tile.convert %Uk : !acc to !acch
      tile.yield %x : !acch
    } else { tile.yield %Uh : !acch }
    tile.yield %y : !acch
  }

  // The state behind `done` chunks of its sequence, if that is a checkpoint: every `every` chunks one, the first `skips` of
  // which are none, and there are `count` of them, from row `first` on.
  tile.proc @checkpoint(%S: !state, %to: !sv, %done: i32, %every: i32, %skips: i32, %first: i32, %count: i32, %vh: i32, %vg: i32) {
    %zero = tile.value 0 : i32
    %rest = arith.remui %done, %every : i32
    %due = arith.cmpi eq, %rest, %zero : i32
    %all = arith.divui %done, %every : i32
    %number = arith.subi %all, %skips : i32
    %some = arith.cmpi ult, %number, %count : i32
    %stored = arith.andi %due, %some : i1
    scf.if %stored {
      %row = arith.addi %first, %number : i32
      tile.store %S to %to[%row, %vh, %vg, %zero] : !state to !sv
    }
    tile.yield
  }

  tile.kernel @main(%q_in: !qv, %k_in: !qv, %v_in: !vv, %g_in: !gv, %beta_in: !gv, %s_in: !sv, %o_out: !vv, %s_out: !sv,
                    %h_out: !sv, %A_log: !hv, %dt_bias: !hv, %slots: !slot, %m_hi: !mat, %m_lo: !mat, %flags: !flag,
                    %clocks: !clk, %scale: f32, %options: i32, %items: !work) {
    %kq = tile.ring depth(kq_depth) : !kq
    %v = tile.ring depth(v_depth) : !v
    %gates = tile.ring depth(gates_depth) : !gates
    %t = tile.ring depth(t_depth) : !t
    %p = tile.ring depth(t_depth) : !p
    %c0 = tile.value 0 : i32
    %c1 = tile.value 1 : i32
    %c4 = tile.value 4 : i32
    %caller = tile.value 0 - 1 : i32           // as the place of a state
    %zeros = tile.value 0 - 2 : i32
    %identity = tile.value 0 - 3 : i32
    %matrix = tile.value 1048576 : i32         // where places of matrices begin
    %outside = tile.value 1073741824 : i32     // a diagonal that no matrix has
    %rows_m = tile.value K : i32
    tile.clear %o_out past %items : !vv, !work

    // -- Everything that does not depend on the state, as far ahead as the rings are deep. A copy loads its own chunks.
    // Rows past a sequence's end arrive as zeros: g = 0 holds the last gate, beta = 0 writes nothing. No role knows about tails.
    tile.role @aux warps(chunk / 16) registers(aux_regs) copies(aux) {
      tile.foreach (%span, %seq, %kh, %vh, %v0, %warm, %hops, %segment, %from, %ready, %to, %guard, %source, %sink,
                    %before, %every, %skips, %cp_first, %cp_count) in %items : !work {
        %mine = arith.cmpi eq, %from, %caller : i32
        scf.if %mine { tile.one_warp { tile.prefetch %s_in[%source, %vh] : !sv } }
        tile.if moves {                                             // what hops need travels as K and Q do
          %pieces, %turns = tile.call @pieces(%hops) : (i32) -> (i32, i32)
          %first_p, %step_p = tile.share %turns
          %jumps = arith.cmpi sgt, %hops, %c0 : i32
          scf.if %jumps {
            scf.for %i = %first_p to %turns step %step_p : i32 {
              tile.call @fetch(%i, %pieces, %segment, %v0, %slots, %m_hi, %m_lo, %flags, %kq)
                : (i32, i32, i32, i32, !slot, !mat, !mat, !flag, !kq) -> ()
            }
          }
        }
        %n = tile.chunks %span
        %first, %step = tile.share %n
        %here0 = tile.chunk %span[%first]
        %g0, %beta0 = tile.call @load_gates(%g_in, %beta_in, %vh, %here0) : (!gv, !gv, i32, !tile.chunk) -> (!bits, !bits)
        tile.call @prepare(%g0, %beta0, %first, %n, %span, %kh, %vh, %warm, %from, %g_in, %beta_in, %k_in, %q_in, %A_log,
                           %dt_bias, %scale, %options, %gates, %kq)
          : (!bits, !bits, i32, i32, !tile.span, i32, i32, i32, i32, !gv, !gv, !qv, !qv, !hv, !hv, f32, i32, !gates, !kq) -> ()
        scf.for %c = %first to %n step %step : i32 {
          %here = tile.chunk %span[%c]
          %full = arith.cmpi sge, %c, %warm : i32
          tile.if profile { tile.stamp %clocks at 8 : !clk }
          // T first: the chain waits for it. It is published before P is begun.
          %kt, %qt = tile.get %kq : !kq
          tile.if profile { tile.stamp %clocks at 9 : !clk }
          %kk_ = tile.mma %kt, trans %kt : !kb, !kb
          tile.one_warp nth(v_warp) {
            tile.put %v as (%v1) : !v { tile.copy_in %v_in[%vh, %v0] at %here to %v1 : !vv to !vb }
          }
          %next = arith.addi %c, %step : i32
          %there = tile.chunk %span[%next]
          %g_soon, %beta_soon = tile.if late -> (!bits, !bits) {
            %x = tile.undef : !bits
            tile.yield %x, %x : !bits, !bits
          } else {
            %x, %y = tile.call @load_gates(%g_in, %beta_in, %vh, %there) : (!gv, !gv, i32, !tile.chunk) -> (!bits, !bits)
            tile.yield %x, %y : !bits, !bits
          }
          %rq = tile.if l2norm -> (!col) {
            %qq = tile.row_squares %qt : !kb
            %x = tile.rsqrt %qq plus 1.0e-6 : !col
            tile.yield %x : !col
          } else {
            %x = tile.fill 0.0 : !col
            tile.yield %x : !col
          }
          %at, %bt, %sgt, %iat, %lt, %betat = tile.get %gates : !gates
          %slow = tile.any %lt : !rowb                              // a chunk that decays by more than the floor
          tile.if l2norm {                                          // norms go into the factors of rows, each warp's its own
            %sg = tile.read trans %sgt : !rowb
            %ia = tile.read trans %iat : !rowb
            %sgrq = tile.mul %sg, %rq : !col, !col
            %iarq = tile.mul %ia, %rq : !col, !col
            tile.write %sgrq to trans %sgt : !col to !rowb
            tile.write %iarq to trans %iat : !col to !rowb
          }
          %kk0 = tile.wait %kk_ : !tile.pending<!sq>
          tile.if profile { tile.stamp %clocks at 10 : !clk }
          %kk, %rk = tile.if l2norm -> (!sq, !col) {                // |k|^2 is the diagonal
            %n2 = tile.diag %kk0 : !sq
            %x = tile.rsqrt %n2 plus 1.0e-6 : !col
            %y = tile.mul %kk0, %x : !sq, !col
            tile.yield %y, %x : !sq, !col
          } else {
            %x = tile.fill 0.0 : !col
            tile.yield %kk0, %x : !sq, !col
          }
          %A = tile.call @gate_left(%kk, %lt, %slow) : (!sq, !rowb, i1) -> !sq
          %Ah = tile.convert %A : !sq to !sqh
          %Al = tile.if fine -> (!sqh) {
            %Aw = tile.convert %Ah : !sqh to !sq
            %rest = tile.sub %A, %Aw : !sq, !sq
            %x = tile.convert %rest : !sq to !sqh
            tile.yield %x : !sqh
          } else { tile.yield %Ah : !sqh }
          %D = tile.if l2norm -> (!blk) {
            %x = tile.solve_blocks %A over %betat times %rk : !sq, !rowb times !col
            %b = tile.read trans %bt : !rowb                        // which keeps 2^G_C, its last
            %brk = tile.mul %b, %rk : !col, !col
            tile.write %brk to trans %betat : !col to !rowb
            tile.yield %x : !blk
          } else {
            %x = tile.solve_blocks %A over %betat : !sq, !rowb
            tile.yield %x : !blk
          }
          tile.if profile { tile.stamp %clocks at 11 : !clk }
          tile.put %t as (%tt) : !t {
            tile.per_warp { tile.call @inverse(%Ah, %Al, %D, %tt) : (!sqh, !sqh, !blk, !tb) -> () }
          }
          tile.if profile { tile.stamp %clocks at 12 : !clk }
          %g1, %beta1 = tile.if late -> (!bits, !bits) {
            %x, %y = tile.call @load_gates(%g_in, %beta_in, %vh, %there) : (!gv, !gv, i32, !tile.chunk) -> (!bits, !bits)
            tile.yield %x, %y : !bits, !bits
          } else { tile.yield %g_soon, %beta_soon : !bits, !bits }

          // Then P. Meanwhile warps that have less of the inverse bring what this copy's next chunk needs.
          tile.if ahead {
            tile.call @prepare(%g1, %beta1, %next, %n, %span, %kh, %vh, %warm, %from, %g_in, %beta_in, %k_in, %q_in, %A_log,
                               %dt_bias, %scale, %options, %gates, %kq)
              : (!bits, !bits, i32, i32, !tile.span, i32, i32, i32, i32, !gv, !gv, !qv, !qv, !hv, !hv, f32, i32, !gates, !kq) -> ()
          }
          %qk = scf.if %full -> (!sq) {
            %qk_ = tile.mma %qt, trans %kt : !kb, !kb
            %x = tile.wait %qk_ : !tile.pending<!sq>
            scf.yield %x : !sq
          } else {
            %x = tile.fill 0.0 : !sq
            scf.yield %x : !sq
          }
          tile.release %kq : !kq
          tile.if profile { tile.stamp %clocks at 13 : !clk }
          %qkg = tile.call @gate_left(%qk, %lt, %slow) : (!sq, !rowb, i1) -> !sq
          tile.put %p as (%pt) : !p {
            tile.per_warp {
              %qkl = tile.lower %qkg below 0 else 0.0 : !sq
              %ia = tile.read trans %iat : !rowb
              %P = tile.mul %qkl, %ia : !sq, !col
              tile.write %P to %pt lower : !sq to !pb
            }
          }
          tile.if profile { tile.stamp %clocks at 14 : !clk }
          tile.release %gates : !gates
          tile.if ahead {} else {
            tile.call @prepare(%g1, %beta1, %next, %n, %span, %kh, %vh, %warm, %from, %g_in, %beta_in, %k_in, %q_in, %A_log,
                               %dt_bias, %scale, %options, %gates, %kq)
              : (!bits, !bits, i32, i32, !tile.span, i32, i32, i32, i32, !gv, !gv, !qv, !qv, !hv, !hv, f32, i32, !gates, !kq) -> ()
          }
        }
      }
    }

    // -- The chain. The copies own different rows; they meet in the turn and through the depth of the rings.
    tile.role @state warps(4) registers(state_regs) copies(states) as %half {
      %out = tile.ring depth(out_depth) : !out
      %rows = tile.value rows : i32
      %v1 = arith.muli %half, %rows : i32
      tile.foreach (%span, %seq, %kh, %vh, %v0, %warm, %hops, %segment, %from, %ready, %to, %guard, %source, %sink,
                    %before, %every, %skips, %cp_first, %cp_count) in %items : !work {
        %n = tile.chunks %span
        tile.if profile {
          tile.stamp global %clocks at 0 : !clk
          tile.stamp %clocks at 1 : !clk
        }
        %inside = tile.if states ge 2 -> (i32) {                    // hops are made for 64 rows, by one copy
          %block = tile.value V / split : i32
          %x = arith.remsi %v0, %block : i32
          tile.yield %x : i32
        } else { tile.yield %c0 : i32 }
        %other = arith.cmpi ne, %inside, %v1 : i32
        %jumps = arith.cmpi sgt, %hops, %c0 : i32
        %idle = arith.andi %jumps, %other : i1
        %whole = arith.addi %v0, %v1 : i32
        %vg = arith.select %jumps, %v0, %whole : i32                // first row in the head
        %place = arith.divsi %vg, %rows : i32
        %at_rest = arith.select %idle, %zeros, %from : i32
        %given = arith.cmpi eq, %at_rest, %caller : i32
        %stored = arith.cmpi sge, %at_rest, %c0 : i32
        %S0 = scf.if %given -> (!state) {
          %x = tile.load %s_in[%source, %vh, %vg, %c0] : !sv to !state
          %guarded = arith.cmpi sge, %guard, %c0 : i32
          scf.if %guarded { tile.signal %flags[%guard, %place] : !flag }
          scf.yield %x : !state
        } else {
          %y = scf.if %stored -> (!state) {
            tile.await %flags[%from, %place] reaches %ready : !flag
            %x = tile.load %slots[%from, %vg, %c0] : !slot to !state
            scf.yield %x : !state
          } else {
            %one = arith.cmpi eq, %from, %identity : i32
            %off = arith.select %one, %vg, %outside : i32
            %x = tile.diagonal %off : !state
            scf.yield %x : !state
          }
          scf.yield %y : !state
        }
        tile.if profile { tile.stamp %clocks at 2 : !clk }

        // Hops: S M in the form of rows, with both operands in two terms, onto N. The result takes N's place.
        %S1 = tile.if moves -> (!state) {
          %landed = scf.if %jumps -> (!state) {                     // few items do
            %works = arith.cmpi eq, %inside, %v1 : i32
            %alone = tile.if states ge 2 -> (i1) {                  // else the copy that has nothing else to do raises flags
              %no = arith.constant false
              tile.yield %no : i1
            } else { tile.yield %works : i1 }
            %x = scf.if %works -> (!state) {
              %y = scf.for %i = %c0 to %hops step %c1 iter_args(%S = %S0) -> (!state) : i32 {
                %to_n = arith.addi %segment, %i : i32
                %Sh = tile.convert %S : !state to !stateh
                %Sw = tile.convert %Sh : !stateh to !state
                %rest = tile.sub %S, %Sw : !state, !state
                %Sl = tile.convert %rest : !state to !stateh
                %n0, %n1 = tile.get %kq : !kq
                %N0 = tile.unpack %n0, %n1 : !kb, !kb to !state
                tile.release %kq : !kq
                %hi0, %lo0 = tile.get %kq : !kq
                %a0 = tile.columns %Sh from 0 : !stateh to !acch
                %b0 = tile.columns %Sl from 0 : !stateh to !acch
                %N1 = tile.call @hop_onto(%N0, %a0, %b0, %hi0, %lo0) : (!state, !acch, !acch, !kb, !kb) -> !state
                tile.release %kq : !kq
                %N2 = tile.if parts ge 2 -> (!state) {
                  %a1 = tile.columns %Sh from 64 : !stateh to !acch
                  %b1 = tile.columns %Sl from 64 : !stateh to !acch
                  %hi1, %lo1 = tile.get %kq : !kq
                  %z = tile.call @hop_onto(%N1, %a1, %b1, %hi1, %lo1) : (!state, !acch, !acch, !kb, !kb) -> !state
                  tile.release %kq : !kq
                  tile.yield %z : !state
                } else { tile.yield %N1 : !state }
                tile.store %N2 to %slots[%to_n, %vg, %c0] : !state to !slot
                tile.signal %flags[%to_n, %place] by %alone : !flag
                scf.yield %N2 : !state
              }
              scf.yield %y : !state
            } else {
              tile.if states ge 2 {
                scf.for %i = %c0 to %hops step %c1 : i32 {
                  tile.call @let_pass(%kq) : (!kq) -> ()            // N
                  tile.call @let_pass(%kq) : (!kq) -> ()
                  tile.if parts ge 2 { tile.call @let_pass(%kq) : (!kq) -> () }
                  %to_n = arith.addi %segment, %i : i32
                  tile.signal %flags[%to_n, %place] by %other : !flag
                }
              }
              scf.yield %S0 : !state
            }
            %pieces, %turns = tile.call @pieces(%hops) : (i32) -> (i32, i32)
            scf.for %i = %pieces to %turns step %c1 : i32 { tile.call @let_pass(%kq) : (!kq) -> () }
            scf.yield %x : !state
          } else { scf.yield %S0 : !state }
          tile.yield %landed : !state
        } else { tile.yield %S0 : !state }

        // Chunks for the state alone.
        %warms = arith.cmpi sgt, %warm, %c0 : i32
        %S2 = scf.if %warms -> (!state) {
          %x = scf.for %c = %c0 to %warm step %c1 iter_args(%S = %S1) -> (!state) : i32 {
            %Sh = tile.convert %S : !state to !stateh
            %kt, %qt = tile.get %kq : !kq
            %ks_ = tile.mma %Sh, trans %kt : !stateh, !kb
            %at, %bt, %sgt, %iat, %lt, %betat = tile.get %gates : !gates
            %varies = tile.call @b_varies(%lt) : (!rowb) -> i1
            %vt = tile.get %v : !v
            %ks = tile.wait %ks_ : !tile.pending<!acc>
            %vbox = tile.sub_tile %vt[%c0, %v1] : !vb to !vh
            %Vh = tile.read trans %vbox : !vh
            %Wh, %tt = tile.if l2norm -> (!wh, !tb) {
              %y = tile.get %t : !t
              %x = tile.call @right_side(%ks, %Vh, %at, %betat, %varies) : (!acc, !acch, !rowb, !rowb, i1) -> !wh
              tile.release %v : !v
              tile.yield %x, %y : !wh, !tb
            } else {
              %x = tile.call @right_side(%ks, %Vh, %at, %bt, %varies) : (!acc, !acch, !rowb, !rowb, i1) -> !wh
              tile.release %v : !v
              %y = tile.get %t : !t
              tile.yield %x, %y : !wh, !tb
            }
            %u_ = tile.mma %Wh, trans %tt lower : !wh, !tb
            %b_now = tile.read %bt : !rowb
            %gamC = tile.last %b_now : !row
            %Sd = tile.mul %S, %gamC : !state, !one
            %U = tile.wait %u_ : !tile.pending<!acc>
            tile.release %t : !t
            %Uh = tile.convert %U : !acc to !acch
            %Ukh = tile.call @kept(%U, %Uh, %lt) : (!acc, !acch, !rowb) -> !acch
            tile.release %gates : !gates
            %s_ = tile.mma %Ukh, %kt into %Sd : !acch, !kb into !state
            tile.release %kq : !kq
            %pt = tile.get %p : !p
            tile.release %p : !p
            %Sn = tile.wait %s_ : !tile.pending<!state>
            scf.yield %Sn : !state
          }
          scf.yield %x : !state
        } else { scf.yield %S1 : !state }

        tile.if checkpoints {                                       // what a sequence begins with; a warm-up begins with nothing
          %done = arith.ori %before, %warm : i32
          %starts = arith.cmpi eq, %done, %c0 : i32
          scf.if %starts {
            tile.call @checkpoint(%S2, %h_out, %c0, %every, %skips, %cp_first, %cp_count, %vh, %vg)
              : (!state, !sv, i32, i32, i32, i32, i32, i32, i32) -> ()
          }
        }
        %S_end = scf.for %c = %warm to %n step %c1 iter_args(%S = %S2) -> (!state) : i32 {
          %here = tile.chunk %span[%c]
          tile.if profile { tile.stamp %clocks at 16 : !clk }
          %Sh = tile.convert %S : !state to !stateh
          // K S, then Q S, one copy at a time; O of the chunk before leaves its registers in between.
          %kt, %qt = tile.get %kq : !kq
          %ks_, %qs_ = tile.turn -> (!tile.pending<!acc>, !tile.pending<!acc>) {
            %x_ = tile.mma %Sh, trans %kt : !stateh, !kb
            tile.resume "O"
            %y_ = tile.mma %Sh, trans %qt : !stateh, !kb
            tile.yield %x_, %y_ : !tile.pending<!acc>, !tile.pending<!acc>
          }

          // Both products are waited for: V and W need the registers that hold S's operand.
          %at, %bt, %sgt, %iat, %lt, %betat = tile.get %gates : !gates
          %varies = tile.call @b_varies(%lt) : (!rowb) -> i1
          %vt = tile.get %v : !v
          %ks = tile.wait %ks_ : !tile.pending<!acc>
          %qs = tile.wait %qs_ : !tile.pending<!acc>
          tile.if profile { tile.stamp %clocks at 17 : !clk }
          %vbox = tile.sub_tile %vt[%c0, %v1] : !vb to !vh
          %Vh = tile.read trans %vbox : !vh

          // W = a V - b K S, U = T W.
          %Wh, %tt = tile.if l2norm -> (!wh, !tb) {                 // then b / |k| is where beta was, once T is there
            %y = tile.get %t : !t
            %x = tile.call @right_side(%ks, %Vh, %at, %betat, %varies) : (!acc, !acch, !rowb, !rowb, i1) -> !wh
            tile.release %v : !v
            tile.yield %x, %y : !wh, !tb
          } else {
            %x = tile.call @right_side(%ks, %Vh, %at, %bt, %varies) : (!acc, !acch, !rowb, !rowb, i1) -> !wh
            tile.release %v : !v
            %y = tile.get %t : !t
            tile.yield %x, %y : !wh, !tb
          }
          tile.if profile { tile.stamp %clocks at 18 : !clk }
          %u_ = tile.mma %Wh, trans %tt lower : !wh, !tb
          %b_now = tile.read %bt : !rowb
          %gamC = tile.last %b_now : !row                           // a is 1 there
          %Sd = tile.mul %S, %gamC : !state, !one                   // earlier, its registers are not free
          %sg = tile.read %sgt : !rowb
          %O0 = tile.mul %qs, %sg : !acc, !row
          %U = tile.wait %u_ : !tile.pending<!acc>
          tile.if profile { tile.stamp %clocks at 19 : !clk }
          tile.release %t : !t

          // U goes into the state first: that is what the next chunk waits for. P comes later than T.
          %Uh = tile.convert %U : !acc to !acch
          %Ukh = tile.call @kept(%U, %Uh, %lt) : (!acc, !acch, !rowb) -> !acch
          tile.release %gates : !gates
          %s_ = tile.mma %Ukh, %kt into %Sd : !acch, !kb into !state
          tile.release %kq : !kq
          %pt = tile.get %p : !p
          tile.if profile { tile.stamp %clocks at 20 : !clk }
          %o_ = tile.mma %Uh, trans %pt lower into %O0 : !acch, !pb into !acc
          tile.release %p : !p
          tile.resume "store"

          tile.defer "O" {
            %O = tile.wait %o_ : !tile.pending<!acc>
            tile.put %out as (%ot) : !out { tile.write %O to trans %ot : !acc to !vh }
          }
          tile.defer "store" {                                      // rows past a sequence's end are not written
            %os = tile.get %out : !out
            tile.copy_out %os to %o_out[%vh, %whole] at %here : !vh to !vv
            tile.release %out : !out
          }
          %Sn = tile.wait %s_ : !tile.pending<!state>
          tile.if checkpoints {
            %next = arith.addi %c, %c1 : i32
            %done = arith.addi %before, %next : i32
            tile.call @checkpoint(%Sn, %h_out, %done, %every, %skips, %cp_first, %cp_count, %vh, %vg)
              : (!state, !sv, i32, i32, i32, i32, i32, i32, i32) -> ()
          }
          tile.if profile { tile.stamp %clocks at 21 : !clk }
          scf.yield %Sn : !state
        }
        tile.if profile {
          tile.stamp %clocks at 3 : !clk
          tile.record %n to %clocks at 5 : !clk
          %c16 = tile.value 65536 : i32
          %hops_high = arith.muli %hops, %c16 : i32
          %kind = arith.addi %hops_high, %warm : i32
          tile.record %kind to %clocks at 6 : !clk
        }
        %ends = arith.cmpi eq, %to, %caller : i32
        %keeps = arith.cmpi sge, %to, %c0 : i32
        scf.if %ends {
          %guarded = arith.cmpi sge, %guard, %c0 : i32
          scf.if %guarded { tile.await %flags[%guard, %place] reaches %c1 : !flag }
          tile.store %S_end to %s_out[%sink, %vh, %vg, %c0] : !state to !sv
        } else {
          scf.if %keeps {
            %is_m = arith.cmpi sge, %to, %matrix : i32
            scf.if %is_m {
              tile.if moves {
                %m = arith.subi %to, %matrix : i32
                %base = arith.muli %m, %rows_m : i32
                %row = arith.addi %base, %vg : i32
                %rows_out = tile.rows %row
                %S_m = tile.prime %S_end : !state                   // else converted in the loop, too
                %Mh = tile.convert %S_m : !state to !stateh
                %Mw = tile.convert %Mh : !stateh to !state
                %rest = tile.sub %S_m, %Mw : !state, !state
                %h0 = tile.columns %S_m from 0 : !state to !part
                %l0 = tile.columns %rest from 0 : !state to !part
                tile.call @put_part(%h0, %out, %m_hi, %rows_out, %c0) : (!part, !out, !mat, !tile.chunk, i32) -> ()
                tile.call @put_part(%l0, %out, %m_lo, %rows_out, %c0) : (!part, !out, !mat, !tile.chunk, i32) -> ()
                tile.if parts ge 2 {
                  %h1 = tile.columns %S_m from 64 : !state to !part
                  %l1 = tile.columns %rest from 64 : !state to !part
                  tile.call @put_part(%h1, %out, %m_hi, %rows_out, %rows) : (!part, !out, !mat, !tile.chunk, i32) -> ()
                  tile.call @put_part(%l1, %out, %m_lo, %rows_out, %rows) : (!part, !out, !mat, !tile.chunk, i32) -> ()
                }
                %flag = arith.addi %place, %c4 : i32
                tile.signal bulk %flags[%m, %flag] : !flag
              }
            } else {
              tile.store %S_end to %slots[%to, %vg, %c0] : !state to !slot
              tile.signal %flags[%to, %place] : !flag
            }
          }
        }
        tile.if profile {
          tile.stamp %clocks at 4 : !clk
          tile.stamp global %clocks at 7 : !clk
        }
      }
    }
  }
}
