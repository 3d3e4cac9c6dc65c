// tile-instantiate: constants for parameters, one side of each selection, procedures inlined.
#include "compiler/tile/Expr.h"
#include "compiler/tile/Passes.h"
#include "dialects/tile/Tile.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
using namespace mlir;
using namespace tile;

namespace tile {
#define GEN_PASS_DEF_INSTANTIATEPASS
#include "compiler/tile/Passes.h.inc"
} // namespace tile

namespace {
struct Instantiate : tile::impl::InstantiatePassBase<Instantiate> {
  using InstantiatePassBase::InstantiatePassBase;

  // The value that a text on the command line stands for; none where it stands for no value.
  static Attribute parseValue(OpBuilder &b, StringRef text) {
    int64_t n;
    if (Type t = elementType(text, b.getContext()))
      return TypeAttr::get(t);
    return text.getAsInteger(10, n) ? Attribute() : b.getI64IntegerAttr(n);
  }
  static InFlightDiagnostic refuse(ParamOp param) {
    InFlightDiagnostic diag = param.emitError("parameter '") << param.getSymName() << "' expected ";
    if (param.getChoicesAttr())
      diag << "one of " << param.getChoicesAttr();
    else
      diag << "a whole number, bf16, f16 or f32";
    diag << ", got ";
    return diag;
  }

  LogicalResult bind(TemplateOp t, Values &env) {
    std::map<std::string, std::string> given;
    for (const std::string &v : values) {
      auto [name, value] = StringRef(v).split('=');
      given[name.str()] = value.str();
    }
    OpBuilder b(t);
    for (Operation &op : t.getBody().front()) {
      if (auto param = dyn_cast<ParamOp>(op)) {
        std::string name = param.getSymName().str();
        Attribute value = param.getInitAttr();
        if (auto it = given.find(name); it != given.end()) {
          value = parseValue(b, it->second);
          if (!value)
            return refuse(param) << "'" << it->second << "'";
          given.erase(it);
        }
        if (auto other = dyn_cast_or_null<StringAttr>(value)) { // the value of a parameter before it
          auto it = env.find(other.str());
          value = it == env.end() ? Attribute() : it->second;
        }
        if (!value)
          return param.emitError("parameter '") << name << "' has no value";
        if (param.getChoicesAttr() && !llvm::is_contained(param.getChoicesAttr().getValue(), value))
          return refuse(param) << value;
        env[name] = value;
      } else if (auto let = dyn_cast<LetOp>(op)) {
        auto v = evaluate(let.getValue(), env);
        if (failed(v))
          return let.emitError("'") << let.getSymName() << "' is not a whole number for these parameters";
        env[let.getSymName().str()] = b.getI64IntegerAttr(*v);
      } else if (auto require = dyn_cast<RequireOp>(op)) {
        auto v = evaluate(require.getCond(), env);
        if (failed(v) || !*v)
          return require.emitError(require.getMessage());
      }
    }
    for (auto &[name, value] : given)
      return t.emitOpError("has no parameter '") << name << "'";
    return success();
  }

  // Numbers for expressions and element types for their names, in attributes and types.
  static LogicalResult substitute(TemplateOp t, const Values &env) {
    AttrTypeReplacer replacer;
    Operation *at = nullptr;
    LogicalResult ok = success();
    replacer.addReplacement([&](ExprAttr e) -> std::optional<Attribute> {
      auto v = evaluate(e, env);
      if (failed(v)) {
        ok = at->emitOpError("cannot evaluate ") << e;
        return std::nullopt;
      }
      return IntegerAttr::get(IntegerType::get(e.getContext(), 64), *v);
    });
    replacer.addReplacement([&](DTypeType d) -> std::optional<Type> {
      if (auto type = dyn_cast<TypeAttr>(env.at(d.getName().str())))
        return type.getValue();
      ok = at->emitOpError("expected parameter '") << d.getName().getValue() << "' to be an element type";
      return std::nullopt;
    });
    t.walk([&](Operation *op) {
      at = op;
      replacer.replaceElementsIn(op, /*replaceAttrs=*/true, /*replaceLocs=*/false, /*replaceTypes=*/true);
    });
    return ok;
  }

  static LogicalResult inlineCalls(TemplateOp t) {
    SmallVector<CallOp> calls;
    t.walk([&](CallOp c) { calls.push_back(c); });
    for (CallOp call : calls) {
      auto proc = dyn_cast_or_null<ProcOp>(SymbolTable::lookupSymbolIn(t, call.getCallee()));
      Operation *yield = proc ? proc.getBody().front().getTerminator() : nullptr;
      if (!proc || !llvm::equal(proc.getBody().getArgumentTypes(), call.getOperandTypes()) ||
          !llvm::equal(yield->getOperandTypes(), call.getResultTypes()))
        return call.emitOpError("expected a procedure of this name and type");
      IRMapping map;
      map.map(proc.getBody().getArguments(), call.getOperands());
      OpBuilder b(call);
      for (Operation &op : proc.getBody().front().without_terminator())
        b.clone(op, map);
      for (auto [r, v] : llvm::zip(call.getResults(), yield->getOperands()))
        r.replaceAllUsesWith(map.lookupOrDefault(v));
      call.erase();
    }
    for (auto proc : llvm::make_early_inc_range(t.getBody().getOps<ProcOp>()))
      proc.erase();
    return success();
  }

  static void selectSides(TemplateOp t) {
    SmallVector<IfOp> ifs;
    t.walk<WalkOrder::PostOrder>([&](IfOp i) { ifs.push_back(i); });
    for (IfOp i : ifs) {
      Region &side = intOf(i.getCond()) ? i.getThen() : i.getOtherwise();
      if (!side.empty()) {
        Operation *yield = side.front().getTerminator();
        i.replaceAllUsesWith(yield->getOperands());
        yield->erase();
        i->getBlock()->getOperations().splice(i->getIterator(), side.front().getOperations());
      }
      i.erase();
    }
  }

  // A role with one copy has nobody to take turns with.
  static void dropTurns(TemplateOp t) {
    SmallVector<Operation *> turns;
    t.walk([&](Operation *op) {
      if (isa<TurnOp, ShareOp>(op) && intOf(op->getParentOfType<RoleOp>().getCopies()) == 1)
        turns.push_back(op);
    });
    for (Operation *op : turns) {
      OpBuilder b(op);
      if (auto share = dyn_cast<ShareOp>(op)) {
        Value zero = arith::ConstantIntOp::create(b, op->getLoc(), 0, 32);
        Value one = arith::ConstantIntOp::create(b, op->getLoc(), 1, 32);
        share->replaceAllUsesWith(ValueRange{zero, one});
      } else {
        Block &body = op->getRegion(0).front();
        op->replaceAllUsesWith(body.getTerminator()->getOperands());
        body.getTerminator()->erase();
        op->getBlock()->getOperations().splice(op->getIterator(), body.getOperations());
      }
      op->erase();
    }
  }

  static void makeConstants(TemplateOp t) {
    t.walk([&](ValueOp v) {
      OpBuilder b(v);
      int64_t n = intOf(v.getValue());
      TypedAttr a = v.getType().isF32() ? TypedAttr(b.getF32FloatAttr(n)) : TypedAttr(b.getIntegerAttr(v.getType(), n));
      Value c = arith::ConstantOp::create(b, v.getLoc(), a);
      v.replaceAllUsesWith(c);
      v.erase();
    });
  }

  // Kernels leave their template, with the parameters that they were made for.
  static void moveKernels(TemplateOp t, const Values &env) {
    for (auto kernel : llvm::make_early_inc_range(t.getBody().getOps<KernelOp>())) {
      kernel.walk([](RingOp ring) {
        if (ring->use_empty())
          ring.erase();
      });
      SmallVector<NamedAttribute> parameters;
      for (auto &[name, value] : env)
        parameters.emplace_back(StringAttr::get(t.getContext(), name), value);
      kernel->setAttr("parameters", DictionaryAttr::get(t.getContext(), parameters));
      kernel->moveBefore(t);
      kernel.setSymName((t.getSymName() + "." + kernel.getSymName()).str());
    }
  }

  LogicalResult instantiate(TemplateOp t) {
    Values env;
    // Calls first: procedures may contain selections of their own.
    if (failed(bind(t, env)) || failed(substitute(t, env)) || failed(inlineCalls(t)))
      return failure();
    selectSides(t);
    dropTurns(t);
    makeConstants(t);
    moveKernels(t, env);
    t.erase();
    return success();
  }

  void runOnOperation() override {
    for (auto t : llvm::make_early_inc_range(getOperation().getOps<TemplateOp>()))
      if (failed(instantiate(t)))
        return signalPassFailure();
  }
};
} // namespace
