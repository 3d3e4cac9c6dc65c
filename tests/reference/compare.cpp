#include "tests/reference/compare.h"
#include "tests/reference/parallel.h"
#include <algorithm>
#include <atomic>
#include <cfloat>
#include <cmath>

namespace gdn::reference {

namespace {

constexpr double tiny = 1e-30;

} // namespace

bool Error::within(const Bound &bound) const {
  return relative <= bound.relative && worstRow <= bound.worstRow && faults().empty();
}

std::string Error::faults() const {
  std::string text;
  auto add = [&](size_t count, const char *what) {
    if (count)
      text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + what;
  };
  add(notFinite, "not finite");
  add(notZero, "not zero");
  add(notTiny, "above 1e-30");
  return text;
}

Error compareRows(const std::vector<double> &difference, const std::vector<double> &reference, size_t heads) {
  Error error;
  double differences = 0, references = 0;
  std::vector<double> head(heads);
  for (size_t row = 0; row < difference.size(); ++row) {
    differences += difference[row];
    references += reference[row];
    head[row % heads] += reference[row] * heads / difference.size();
  }
  if (differences == 0)
    return error;
  error.relative = std::sqrt(differences / references);
  for (size_t row = 0; row < difference.size(); ++row)
    if (difference[row] > 0)
      error.worstRow =
          std::max(error.worstRow, std::sqrt(difference[row] / std::max(reference[row], head[row % heads])));
  return error;
}

Error compare(const std::vector<double> &want, const std::vector<float> &got, size_t heads, size_t width) {
  size_t rows = want.size() / width;
  std::vector<double> difference(rows), reference(rows);
  std::atomic<size_t> notFinite = 0, notZero = 0, notTiny = 0;
  parallelFor(rows, [&](size_t row) {
    double sum = 0, norm = 0;
    size_t infinite = 0, nonZero = 0, large = 0;
    for (size_t i = row * width; i < (row + 1) * width; ++i) {
      norm += want[i] * want[i];
      if (!std::isfinite(got[i])) {
        infinite += std::abs(want[i]) <= FLT_MAX;
        continue;
      }
      sum += (got[i] - want[i]) * (got[i] - want[i]);
      nonZero += want[i] == 0 && got[i] != 0;
      large += std::abs(got[i]) > tiny;
    }
    notFinite += infinite;
    notZero += nonZero;
    bool small = norm < tiny * tiny;
    notTiny += small ? large : 0;
    difference[row] = small ? 0 : sum;
    reference[row] = small ? 0 : norm;
  });
  Error error = compareRows(difference, reference, heads);
  error.notFinite = notFinite;
  error.notZero = notZero;
  error.notTiny = notTiny;
  return error;
}

} // namespace gdn::reference
