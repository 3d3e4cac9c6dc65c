// Roles that would wait for each other for ever are refused, with what each of them waits for.
// RUN: gdn-opt %s --split-input-file --verify-diagnostics --tile-check-progress --mlir-print-op-on-diagnostic=false

// The template as it is, and with rings as shallow as it stands.
// RUN: gdn-opt %S/../../../templates/forward.mlir --tile-instantiate="values=K=128,V=128" --tile-rotate --tile-check-progress -o /dev/null
// RUN: gdn-opt %S/../../../templates/forward.mlir --tile-instantiate="values=K=128,V=128,aux=1,kq_depth=1,v_depth=1,gates_depth=1,t_depth=1" --tile-rotate --tile-check-progress -o /dev/null
// O is put a chunk before it is stored: nobody frees the slot when O is to be put and was never got.
// RUN: sed '/tile.resume "O"/d; s/tile.resume "store"/&\n          tile.resume "O"/' %S/../../../templates/forward.mlir > %t.mlir
// RUN: not gdn-opt %t.mlir --tile-instantiate="values=K=128,V=128" --tile-rotate --tile-check-progress 2>&1 | FileCheck %s
// CHECK: error: roles stop with work left, for items of 9 chunks
// CHECK: note: copy 0 of role 'state' waits for a slot to be published
// What hops leave over of the copies' turns is put all the same: somebody has to take it.
// RUN: sed '/pieces to .turns/d' %S/../../../templates/forward.mlir > %t.hops.mlir
// RUN: not gdn-opt %t.hops.mlir --tile-instantiate="values=K=128,V=128" --tile-rotate --tile-check-progress 2>&1 | FileCheck %s --check-prefix=HOPS
// HOPS: error: roles stop with work left, for items of 9 chunks, of which 4 for the state alone, behind 1 hops
// HOPS: note: its users move 12 and 13 slots

!ring = !tile.ring<!tile.buf<[64, 64], bf16>>

// Two rings, moved in one order by both roles.
tile.kernel @same_order(%n: !tile.items<1, 64>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %a = tile.ring depth(1) : !ring
  %b = tile.ring depth(1) : !ring
  tile.role @producer warps(4) registers(64) {
    tile.foreach (%span, %seq, %kh, %vh, %v0) in %n : !tile.items<1, 64> {
      %chunks = tile.chunks %span
      scf.for %i = %zero to %chunks step %one : i32 {
        tile.put %a as (%x) : !ring { }
        tile.put %b as (%x) : !ring { }
      }
    }
  }
  tile.role @consumer warps(4) registers(64) {
    tile.foreach (%span, %seq, %kh, %vh, %v0) in %n : !tile.items<1, 64> {
      %chunks = tile.chunks %span
      scf.for %i = %zero to %chunks step %one : i32 {
        %x = tile.get %a : !ring
        tile.release %a : !ring
        %y = tile.get %b : !ring
        tile.release %b : !ring
      }
    }
  }
}

// -----
// Two slots of A before one of B, where A has one.
!ring = !tile.ring<!tile.buf<[64, 64], bf16>>
// expected-error @+1 {{roles stop with work left, for items of 9 chunks}}
tile.kernel @crossed() {
  %a = tile.ring depth(1) : !ring
  %b = tile.ring depth(1) : !ring
  tile.role @producer warps(4) registers(64) {
    tile.put %a as (%x) : !ring { }
    // expected-note @+1 {{copy 0 of role 'producer' waits for a slot to be released}}
    tile.put %a as (%x) : !ring { }
    tile.put %b as (%x) : !ring { }
  }
  tile.role @consumer warps(4) registers(64) {
    // expected-note @+1 {{copy 0 of role 'consumer' waits for a slot to be published}}
    %y = tile.get %b : !ring
    %x = tile.get %a : !ring
    tile.release %a : !ring
    %z = tile.get %a : !ring
    tile.release %a : !ring
    tile.release %b : !ring
  }
}

// -----
// Nine slots are enough for one item, not for many.
!ring = !tile.ring<!tile.buf<[64, 64], bf16>>
// expected-error @+1 {{roles stop with work left, for items of 5, 0, 3, 7 chunks}}
tile.kernel @items(%n: !tile.items<1, 64>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %a = tile.ring depth(9) : !ring
  %b = tile.ring depth(1) : !ring
  tile.role @producer warps(4) registers(64) {
    tile.foreach (%span, %seq, %kh, %vh, %v0) in %n : !tile.items<1, 64> {
      %chunks = tile.chunks %span
      scf.for %i = %zero to %chunks step %one : i32 {
        // expected-note @+1 {{copy 0 of role 'producer' waits for a slot to be released}}
        tile.put %a as (%x) : !ring { }
      }
    }
    tile.put %b as (%x) : !ring { }
  }
  tile.role @consumer warps(4) registers(64) {
    // expected-note @+1 {{copy 0 of role 'consumer' waits for a slot to be published}}
    %y = tile.get %b : !ring
    tile.release %b : !ring
    tile.foreach (%span, %seq, %kh, %vh, %v0) in %n : !tile.items<1, 64> {
      %chunks = tile.chunks %span
      scf.for %i = %zero to %chunks step %one : i32 {
        %x = tile.get %a : !ring
        tile.release %a : !ring
      }
    }
  }
}

// -----
// One more slot is put than got: the last one is nobody's.
!ring = !tile.ring<!tile.buf<[64, 64], bf16>>
// expected-error @+1 {{roles stop with work left, for items of 9 chunks}}
tile.kernel @balance() {
  // expected-note @+1 {{its users move}}
  %a = tile.ring depth(2) : !ring
  tile.role @producer warps(4) registers(64) {
    tile.put %a as (%x) : !ring { }
    tile.put %a as (%x) : !ring { }
  }
  tile.role @consumer warps(4) registers(64) {
    %x = tile.get %a : !ring
    tile.release %a : !ring
  }
}

// -----
// Two slots ahead of what the role takes: which one that is, its position does not say.
!ring = !tile.ring<!tile.buf<[64, 64], bf16>>
tile.kernel @too_far_ahead() {
  %a = tile.ring depth(3) : !ring
  tile.role @both warps(4) registers(64) {
    tile.put %a as (%x) : !ring { }
    // expected-error @+1 {{expected a role that fills a ring which it takes from to put one slot for each get, and the first behind those that it holds}}
    tile.put %a as (%x) : !ring { }
    %y = tile.get %a : !ring
    tile.release %a : !ring
    %z = tile.get %a : !ring
    tile.release %a : !ring
  }
}
