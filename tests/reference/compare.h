// How far a result is from the reference.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace gdn::reference {

struct Bound {
  double relative = 0, worstRow = 0;

  // A fault in one row of many hardly moves the Frobenius norm, so rows are judged by themselves too: ten times more
  // loosely, or four times where a row is a whole matrix, which averages as well as a tensor does.
  static Bound of(double relative, size_t width) { return {relative, (width < 1024 ? 10 : 4) * relative}; }
};

struct Error {
  double relative = 0;  // Frobenius norm of the difference over that of the reference
  double worstRow = 0;  // the same for one row, relative to the larger of its own and its head's root mean square norm
  size_t notFinite = 0; // elements that are infinite or NaN where the reference fits fp32
  size_t notZero = 0;   // elements that are not zero where the reference is exactly zero
  size_t notTiny = 0;   // elements beyond 1e-30 in rows whose reference norm is below it

  bool within(const Bound &bound) const;
  std::string faults() const; // what `within` refuses besides the two norms; "" if nothing
};

// One row is `width` elements; rows are [outer, heads].
Error compare(const std::vector<double> &want, const std::vector<float> &got, size_t heads, size_t width);

// From sums over rows made elsewhere: squares of the difference and of the reference.
Error compareRows(const std::vector<double> &difference, const std::vector<double> &reference, size_t heads);

} // namespace gdn::reference
