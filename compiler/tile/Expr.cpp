// Parameter expressions: what a size or a condition of a template is for given parameters.
#include "compiler/tile/Expr.h"
#include "dialects/tile/Tile.h"
using namespace mlir;
using namespace tile;

Type tile::elementType(StringRef name, MLIRContext *ctx) {
  if (name == "bf16")
    return BFloat16Type::get(ctx);
  if (name == "f16")
    return Float16Type::get(ctx);
  return name == "f32" ? Type(Float32Type::get(ctx)) : Type();
}
// Element types take part in expressions only to be compared: codes that no size has.
static int64_t elementCode(Type t) { return t.isBF16() ? -1001 : t.isF16() ? -1002 : -1003; }

FailureOr<int64_t> tile::evaluate(Attribute e, const Values &values) {
  if (auto i = dyn_cast<IntegerAttr>(e))
    return i.getInt();
  auto x = dyn_cast<ExprAttr>(e);
  if (!x)
    return failure();
  StringRef op = x.getOp();
  if (op == "ref") {
    StringRef name = cast<StringAttr>(x.getArgs()[0]).getValue();
    if (Type t = elementType(name, e.getContext()))
      return elementCode(t);
    auto it = values.find(name.str());
    if (it == values.end())
      return failure();
    if (auto t = dyn_cast<TypeAttr>(it->second))
      return elementCode(t.getValue());
    return cast<IntegerAttr>(it->second).getInt();
  }
  auto a = evaluate(x.getArgs()[0], values);
  if (failed(a))
    return failure();
  if (op == "not")
    return int64_t(!*a);
  if (op == "?")
    return evaluate(x.getArgs()[*a ? 1 : 2], values);
  auto b = evaluate(x.getArgs()[1], values);
  if (failed(b) || ((op == "/" || op == "mod") && *b == 0))
    return failure();
  if (op == "/" && *a % *b) // a size that does not divide is a mistake, not a rounding
    return failure();
  if (op == "+")
    return *a + *b;
  if (op == "-")
    return *a - *b;
  if (op == "*")
    return *a * *b;
  if (op == "/")
    return *a / *b;
  if (op == "mod")
    return *a % *b;
  if (op == "eq")
    return int64_t(*a == *b);
  if (op == "ne")
    return int64_t(*a != *b);
  if (op == "le")
    return int64_t(*a <= *b);
  if (op == "ge")
    return int64_t(*a >= *b);
  if (op == "and")
    return int64_t(*a && *b);
  return int64_t(*a || *b);
}
