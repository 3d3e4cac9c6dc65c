// The `sm` dialect: one op for each hardware idiom of an NVIDIA SM, on the registers of one thread.
#ifndef GDNC_SM_TD
#define GDNC_SM_TD
include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Sm_Dialect : Dialect {
  let name = "sm";
  let cppNamespace = "::sm";
  let summary = "what one SM executes";
  let description = [{
    Values are the registers of one thread: `f32`, `i32` (addresses in shared memory, pairs of 16-bit floats, indices), `i64` (addresses in
    global memory), `i1`. A fragment is a list of registers. scf, arith and this dialect make up a kernel. Whatever has an effect on other
    threads, on memory or on the order of either becomes convergent, side-effecting inline assembly: its order in the text is the order of
    issue. Pure ops may be moved and merged by LLVM.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

def Sm_Map : TypeDef<Sm_Dialect, "Map"> {
  let mnemonic = "map";
  let summary = "a tensor map: 128 bytes of the kernel's parameters, aligned to 64, read by the copy engine";
}

def Sm_Half : I32EnumAttr<"Half", "a 16-bit element type", [I32EnumAttrCase<"BF16", 0, "bf16">, I32EnumAttrCase<"F16", 1, "f16">]> {
  let cppNamespace = "::sm";
  let genSpecializedAttr = 0;
}
def Sm_HalfAttr : EnumAttr<Sm_Dialect, Sm_Half, "half">;

class Sm_Op<string m, list<Trait> t = []> : Op<Sm_Dialect, m, t>;
class Sm_Pure<string m, list<Trait> t = []> : Sm_Op<m, t # [Pure]>;

//===-- structure --------------------------------------------------------===//
def KernelOp : Sm_Op<"kernel", [IsolatedFromAbove, Symbol, NoTerminator, SingleBlock]> {
  let summary = "an entry; arguments are its parameters: maps, i32, i64, f32";
  let description = [{
    `threads`: block size, `shared_bytes`: dynamic shared memory, `params`: one dictionary an argument, from which the bundle's parameter
    list is made (kind, name, axis, element, columns, box_columns, box_rows). Shared addresses start at `sm.shared_base`, aligned to 1024.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$threads, I64Attr:$shared_bytes, ArrayAttr:$params);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1; // whole warpgroups; one params entry an argument, of its type
}
def SharedBaseOp : Sm_Pure<"shared_base"> {
  let summary = "address of the block's dynamic shared memory";
  let results = (outs I32:$address);
  let assemblyFormat = "attr-dict";
}
class Sm_Special<string m, string s, Type t = I32> : Sm_Pure<m> {
  let summary = s;
  let results = (outs t:$value);
  let assemblyFormat = "attr-dict `:` type($value)";
}
def ThreadOp : Sm_Special<"thread", "index of this thread in its block">;
class Sm_Afresh<string m, string s> : Sm_Op<m> {
  let summary = s # ", read afresh: it does not stay in registers between uses";
  let results = (outs I32:$value);
  let assemblyFormat = "attr-dict `:` type($value)";
}
def BlockOp : Sm_Afresh<"block", "index of this block in the grid">;
def BlocksOp : Sm_Afresh<"blocks", "number of blocks in the grid">;
def WarpOp : Sm_Op<"warp"> {
  let summary = "index of this warp in its block, through a shuffle: the same register in all lanes, so branches on it are uniform";
  let results = (outs I32:$value);
  let assemblyFormat = "attr-dict";
}
def LaneOp : Sm_Op<"lane"> {
  let summary = "index of this thread in its warp, read afresh: what is computed from it does not stay in registers around a loop";
  let results = (outs I32:$value);
  let assemblyFormat = "attr-dict";
}
def OpaqueOp : Sm_Op<"opaque", [SameOperandsAndResultType]> {
  let summary = "the operand, which nothing that is computed from the result may be hoisted above";
  let arguments = (ins AnyTypeOf<[I32, I64, F32]>:$value);
  let results = (outs AnyTypeOf<[I32, I64, F32]>:$result);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}
def ClockOp : Sm_Op<"clock"> {
  let summary = "clock64, the clock of this SM";
  let results = (outs I64:$value);
  let assemblyFormat = "attr-dict";
}
def TimerOp : Sm_Op<"timer"> {
  let summary = "globaltimer, nanoseconds";
  let results = (outs I64:$value);
  let assemblyFormat = "attr-dict";
}
def UndefOp : Sm_Pure<"undef"> {
  let summary = "a register that is never read before it is written";
  let results = (outs AnyTypeOf<[F32, I32]>:$value);
  let assemblyFormat = "attr-dict `:` type($value)";
}
def MaxRegistersOp : Sm_Op<"max_registers"> {
  let summary = "setmaxnreg: the registers a thread of this warpgroup may use from here on";
  let arguments = (ins I64Attr:$count, UnitAttr:$increase);
  let assemblyFormat = "(`increase` $increase^)? $count attr-dict";
  let hasVerifier = 1; // 24..256, multiple of 8
}

//===-- synchronisation ------------------------------------------------------===//
def MbarrierInitOp : Sm_Op<"mbarrier.init"> {
  let summary = "an mbarrier whose phases complete on `count` arrivals and the bytes they expect; one thread, once, before any use";
  let arguments = (ins I32:$address, I64Attr:$count);
  let assemblyFormat = "$address `count` $count attr-dict";
}
def FenceMbarrierInitOp : Sm_Op<"mbarrier.fence_init"> {
  let summary = "makes the initialisations before it known to bulk copies; other threads learn of them from a barrier behind it";
  let assemblyFormat = "attr-dict";
}
def MbarrierArriveOp : Sm_Op<"mbarrier.arrive", [AttrSizedOperandSegments]> {
  let summary = "arrive once, in threads where `if` holds (all without it); not before the registers `after` hold their values";
  let description = [{ptxas moves an arrive above the use of ldmatrix data unless its address depends on that data.}];
  let arguments = (ins I32:$address, Optional<I1>:$pred, Variadic<I32>:$after);
  let assemblyFormat = "$address (`if` $pred^)? (`after` $after^)? attr-dict";
}
def MbarrierExpectOp : Sm_Op<"mbarrier.expect"> {
  let summary = "arrive and expect this many bytes of bulk copies in the current phase";
  let arguments = (ins I32:$address, I64Attr:$bytes);
  let assemblyFormat = "$address `bytes` $bytes attr-dict";
}
def MbarrierWaitOp : Sm_Op<"mbarrier.wait"> {
  let summary = "spin until the phase of this parity has completed";
  let arguments = (ins I32:$address, I32:$parity);
  let assemblyFormat = "$address `parity` $parity attr-dict";
}
def BarSyncOp : Sm_Op<"bar.sync"> {
  let summary = "named barrier: wait for `threads` arrivals";
  let arguments = (ins I64Attr:$id, I64Attr:$threads);
  let assemblyFormat = "$id `threads` $threads attr-dict";
  let hasVerifier = 1; // id 0..15, threads a multiple of 32
}
def BarArriveOp : Sm_Op<"bar.arrive"> {
  let summary = "named barrier: arrive without waiting";
  let arguments = (ins I64Attr:$id, I64Attr:$threads);
  let assemblyFormat = "$id `threads` $threads attr-dict";
  let hasVerifier = 1;
}
def WarpSyncOp : Sm_Op<"warp_sync"> {
  let summary = "until all lanes of the warp are here, their shared-memory accesses before it done";
  let assemblyFormat = "attr-dict";
}
def FenceAsyncOp : Sm_Op<"fence.async"> {
  let summary = "fence.proxy.async.shared::cta: generic writes to shared memory before it are seen by products and bulk copies after it";
  let assemblyFormat = "attr-dict";
}

//===-- between blocks -------------------------------------------------------===//
def FlagLoadOp : Sm_Op<"flag.load"> {
  let summary = "ld.acquire.gpu: a flag in global memory, before what stands behind it, where `if` holds, else 0";
  let arguments = (ins I64:$address, I1:$pred);
  let results = (outs I32:$value);
  let assemblyFormat = "$address `if` $pred attr-dict";
}
def FlagWaitOp : Sm_Op<"flag.wait"> {
  let summary = "spin until a flag in global memory is at least `count`";
  let arguments = (ins I64:$address, I32:$count);
  let assemblyFormat = "$address `reaches` $count attr-dict";
}
def FlagRaiseOp : Sm_Op<"flag.raise"> {
  let summary = "red.release.gpu: a flag in global memory goes up by one, behind what stands before it";
  let arguments = (ins I64:$address);
  let assemblyFormat = "$address attr-dict";
}
def AtomicAddOp : Sm_Op<"atomic.add"> {
  let summary = "add to a word of global memory; the result is what it held";
  let arguments = (ins I64:$address, I32:$value);
  let results = (outs I32:$old);
  let assemblyFormat = "$address `,` $value attr-dict";
}
def AtomicCasOp : Sm_Op<"atomic.cas"> {
  let summary = "set a word of global memory to `desired` if it holds `expected`; the result is what it held";
  let arguments = (ins I64:$address, I32:$expected, I32:$desired);
  let results = (outs I32:$old);
  let assemblyFormat = "$address `,` $expected `,` $desired attr-dict";
}
def GridWaitOp : Sm_Op<"grid_wait"> {
  let summary = "griddepcontrol.wait: until the grid that this launch may overlap has ended; what it wrote is then seen (PTX ISA 9.7.13.13)";
  let assemblyFormat = "attr-dict";
}
def FenceAsyncGlobalOp : Sm_Op<"fence.async_global"> {
  let summary = "fence.proxy.async.global: generic writes to global memory, of which this thread knows, are seen by bulk copies after it";
  let assemblyFormat = "attr-dict";
}

//===-- bulk copies ----------------------------------------------------------===//
def BulkLoadOp : Sm_Op<"bulk.load"> {
  let summary = "tensor copy, global to shared, completing on an mbarrier; one thread issues it";
  let arguments = (ins Sm_Map:$map, Variadic<I32>:$coords, I32:$to, I32:$barrier);
  let assemblyFormat = "$map `[` $coords `]` `to` $to `on` $barrier attr-dict";
  let hasVerifier = 1; // rank 1..5
}
def BulkCopyOp : Sm_Op<"bulk.copy"> {
  let summary = "as many contiguous bytes, a multiple of 16, global to shared, completing on an mbarrier; one thread issues it";
  let arguments = (ins I64:$address, I64Attr:$bytes, I32:$to, I32:$barrier);
  let assemblyFormat = "$address `bytes` $bytes `to` $to `on` $barrier attr-dict";
}
def BulkPrefetchOp : Sm_Op<"bulk.prefetch"> {
  let summary = "as many contiguous bytes of global memory, a multiple of 16, into the second-level cache; one thread issues it";
  let arguments = (ins I64:$address, I32:$bytes);
  let assemblyFormat = "$address `bytes` $bytes attr-dict";
}
def BulkStoreOp : Sm_Op<"bulk.store"> {
  let summary = "tensor copy, shared to global, into the thread's current bulk group";
  let arguments = (ins I32:$from, Sm_Map:$map, Variadic<I32>:$coords);
  let assemblyFormat = "$from `to` $map `[` $coords `]` attr-dict";
  let hasVerifier = 1;
}
def BulkCommitOp : Sm_Op<"bulk.commit"> {
  let summary = "closes the thread's current group of bulk stores";
  let assemblyFormat = "attr-dict";
}
def BulkWaitOp : Sm_Op<"bulk.wait"> {
  let summary = "until at most `leaves` of this thread's groups are pending; with `read`, until they have read their sources";
  let arguments = (ins I64Attr:$leaves, UnitAttr:$read);
  let assemblyFormat = "(`read` $read^)? $leaves attr-dict";
}

//===-- matrix products of a warpgroup ------------------------------------------===//
def WgmmaFenceOp : Sm_Op<"wgmma.fence", [AllTypesMatch<["values", "results"]>]> {
  let summary = "wgmma.fence; the registers that the next products read or accumulate onto pass through it (R2)";
  let arguments = (ins Variadic<AnyTypeOf<[F32, I32]>>:$values);
  let results = (outs Variadic<AnyTypeOf<[F32, I32]>>:$results);
  let assemblyFormat = "(`(` $values^ `:` type($values) `)`)? attr-dict"; // bare, it would take the next line's result
}
def WgmmaOp : Sm_Op<"wgmma", [AttrSizedOperandSegments]> {
  let summary = "wgmma.mma_async m64 n k16: one k-step; D = A B, or D = A B + acc";
  let description = [{
    `acc` holds n/2 registers, or none: then the product starts fresh (scale-d 0). A is four registers `a` or the low word `a_desc` of a
    descriptor; B the low word `b_desc`. The high word is that of a 128-byte swizzle with 1024 bytes between groups of eight rows.
    `trans_b`: B is stored [k, n], MN-major; else [n, k]. `unswizzled`: the high word is 0, one 128-byte core matrix stands for all of B. Results are the accumulator, which only sm.wgmma.wait makes readable (R1).
  }];
  let arguments = (ins Variadic<F32>:$acc, Variadic<I32>:$a, Optional<I32>:$a_desc, I32:$b_desc, I64Attr:$n, Sm_HalfAttr:$type,
                   UnitAttr:$trans_a, UnitAttr:$trans_b, UnitAttr:$unswizzled);
  let results = (outs Variadic<F32>:$d);
  let assemblyFormat = "$type `n` $n (`a` `(` $a^ `)`)? (`at` $a_desc^)? `b` $b_desc (`into` `(` $acc^ `)`)? attr-dict `:` type($d)";
  let hasVerifier = 1; // n/2 results, n a multiple of 8 up to 256; acc none or n/2; four registers or a descriptor; no transposed register A
}
def WgmmaCommitOp : Sm_Op<"wgmma.commit"> {
  let summary = "closes the warpgroup's current group of products";
  let assemblyFormat = "attr-dict";
}
def WgmmaWaitOp : Sm_Op<"wgmma.wait", [AllTypesMatch<["values", "results"]>]> {
  let summary = "until at most `leaves` groups are in flight; accumulators and register operands of the retired ones pass through it (R1, R2)";
  let arguments = (ins I64Attr:$leaves, Variadic<AnyTypeOf<[F32, I32]>>:$values);
  let results = (outs Variadic<AnyTypeOf<[F32, I32]>>:$results);
  let assemblyFormat = "$leaves (`(` $values^ `:` type($values) `)`)? attr-dict";
}

//===-- a warp's registers ---------------------------------------------------------===//
def MmaOp : Sm_Pure<"mma", [AttrSizedOperandSegments]> {
  let summary = "mma.sync m16 n8 k16 (four A registers, two B) or k8 (two A, one B), fp32 accumulation";
  let arguments = (ins Variadic<I32>:$a, Variadic<I32>:$b, Variadic<F32>:$c, Sm_HalfAttr:$type);
  let results = (outs F32:$d0, F32:$d1, F32:$d2, F32:$d3);
  let assemblyFormat = "$type `a` `(` $a `)` `b` `(` $b `)` `c` `(` $c `)` attr-dict";
  let hasVerifier = 1;
}
def LdmatrixOp : Sm_Op<"ldmatrix"> {
  let summary = "1, 2 or 4 8x8 matrices of 16-bit elements, shared to registers; lane i gives the address of row i mod 8 of matrix i / 8";
  let arguments = (ins I32:$address, UnitAttr:$trans);
  let results = (outs Variadic<I32>:$values);
  let assemblyFormat = "(`trans` $trans^)? $address attr-dict `:` type($values)";
  let hasVerifier = 1;
}
def StmatrixOp : Sm_Op<"stmatrix"> {
  let summary = "1, 2 or 4 8x8 matrices of 16-bit elements, registers to shared; addresses as those of sm.ldmatrix";
  let arguments = (ins Variadic<I32>:$values, I32:$address, UnitAttr:$trans);
  let assemblyFormat = "$values `to` (`trans` $trans^)? $address attr-dict";
  let hasVerifier = 1;
}
def MovmatrixOp : Sm_Pure<"movmatrix"> {
  let summary = "an 8x8 matrix of 16-bit elements, transposed";
  let arguments = (ins I32:$value);
  let results = (outs I32:$result);
  let assemblyFormat = "$value attr-dict";
}
def Sm_ShuffleMode : I32EnumAttr<"ShuffleMode", "which lane a shuffle reads", [I32EnumAttrCase<"Idx", 0, "idx">, I32EnumAttrCase<"Up", 1, "up">,
    I32EnumAttrCase<"Bfly", 2, "bfly">]> {
  let cppNamespace = "::sm";
  let genSpecializedAttr = 0;
}
def Sm_ShuffleModeAttr : EnumAttr<Sm_Dialect, Sm_ShuffleMode, "shuffle">;
def ShuffleOp : Sm_Op<"shuffle", [AllTypesMatch<["value", "result"]>]> {
  let summary = "shfl.sync over the whole warp";
  let arguments = (ins Sm_ShuffleModeAttr:$mode, AnyTypeOf<[F32, I32]>:$value, I32:$lane);
  let results = (outs AnyTypeOf<[F32, I32]>:$result);
  let assemblyFormat = "$mode $value `by` $lane attr-dict `:` type($value)";
}
def ElectOp : Sm_Op<"elect"> {
  let summary = "elect.sync over the whole warp: true in one lane, always the same. ptxas knows that what it guards is one thread's";
  let results = (outs I1:$result);
  let assemblyFormat = "attr-dict";
}
def AnyOp : Sm_Op<"any"> {
  let summary = "vote.sync.any over the whole warp";
  let arguments = (ins I1:$value);
  let results = (outs I1:$result);
  let assemblyFormat = "$value attr-dict";
}

//===-- memory ---------------------------------------------------------------------===//
def LoadSharedOp : Sm_Op<"load_shared"> {
  let summary = "1, 2 or 4 consecutive 32-bit words; an ordinary load: unread words may be dropped, order against fences and barriers is kept";
  let arguments = (ins I32:$address);
  let results = (outs Variadic<AnyTypeOf<[F32, I32]>>:$values);
  let assemblyFormat = "$address attr-dict `:` type($values)";
  let hasVerifier = 1;
}
def StoreSharedOp : Sm_Op<"store_shared"> {
  let summary = "1, 2 or 4 consecutive 32-bit words, or one 16-bit word (`narrow`: the low half of an i32)";
  let arguments = (ins Variadic<AnyTypeOf<[F32, I32]>>:$values, I32:$address, UnitAttr:$narrow);
  let assemblyFormat = "$values `to` $address (`narrow` $narrow^)? attr-dict `:` type($values)";
  let hasVerifier = 1;
}
def LoadGlobalOp : Sm_Op<"load_global"> {
  let summary = "1, 2 or 4 consecutive words of global memory where `if` holds, else zeros; `narrow`: one 16-bit word, zero-extended";
  let arguments = (ins I64:$address, I1:$pred, UnitAttr:$narrow);
  let results = (outs Variadic<AnyTypeOf<[F32, I32, I64]>>:$values);
  let assemblyFormat = "(`narrow` $narrow^)? $address `if` $pred attr-dict `:` type($values)";
  let hasVerifier = 1;
}
def StoreGlobalOp : Sm_Op<"store_global"> {
  let summary = "1, 2 or 4 consecutive words to global memory where `if` holds; `narrow`: the low half of one i32";
  let arguments = (ins Variadic<AnyTypeOf<[F32, I32, I64]>>:$values, I64:$address, I1:$pred, UnitAttr:$narrow);
  let assemblyFormat = "(`narrow` $narrow^)? $values `to` $address `if` $pred attr-dict `:` type($values)";
  let hasVerifier = 1;
}

//===-- arithmetic that arith lacks --------------------------------------------------===//
def PackOp : Sm_Pure<"pack"> {
  let summary = "two fp32 values as a pair of 16-bit floats, rounded to nearest even; `lo` in the low half; `saturate`: never to infinity";
  let arguments = (ins Sm_HalfAttr:$type, F32:$lo, F32:$hi, UnitAttr:$saturate);
  let results = (outs I32:$result);
  let assemblyFormat = "$type (`saturate` $saturate^)? $lo `,` $hi attr-dict";
}
def UnpackOp : Sm_Pure<"unpack"> {
  let summary = "a pair of 16-bit floats as two fp32 values";
  let arguments = (ins Sm_HalfAttr:$type, I32:$value);
  let results = (outs F32:$lo, F32:$hi);
  let assemblyFormat = "$type $value attr-dict";
}
class Sm_Unary<string m, string s> : Sm_Pure<m> {
  let summary = s;
  let arguments = (ins F32:$value);
  let results = (outs F32:$result);
  let assemblyFormat = "$value attr-dict";
}
def Ex2Op : Sm_Unary<"ex2", "ex2.approx.ftz.f32: 2^x within 2 ulp (PTX ISA 9.7.3.22)">;
def RsqrtOp : Sm_Unary<"rsqrt", "rsqrt.approx.ftz.f32">;
#endif
