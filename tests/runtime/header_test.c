/* The header is C99, and a C program needs nothing but it and the library. */
#include "gdn/gdn.h"
#include <string.h>

int main(void) {
  gdn_bundle *bundle = 0;
  gdn_forward_args args;
  gdn_tensor tensor = gdn_contiguous(0, GDN_BF16, 5, 3, 64);
  gdn_state state = gdn_contiguous_state(0, GDN_F32, 3, 64, 32);
  memset(&args, 0, sizeof args);
  args.struct_size = sizeof args;
  if (tensor.batch_stride != 960 || tensor.token_stride != 192 || tensor.head_stride != 64 || tensor.dtype != GDN_BF16)
    return 1;
  if (state.sequence_stride != 6144 || state.head_stride != 2048 || state.dtype != GDN_F32)
    return 2;
  if (gdn_version() / 100 != GDN_VERSION_MAJOR * 100 + GDN_VERSION_MINOR || strcmp(gdn_last_error_message(), "") != 0)
    return 3;
  if (gdn_bundle_from_memory("no bundle", 9, &bundle) != GDN_BUNDLE_CORRUPT || bundle)
    return 4;
  if (gdn_forward(bundle, &args) != GDN_INVALID_ARGUMENT || !strstr(gdn_last_error_message(), "bundle"))
    return 5;
  return 0;
}
