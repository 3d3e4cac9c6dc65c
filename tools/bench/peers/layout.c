/* Prints the offsets of the structures that gdn.py repeats, for layout_test.py. */
#include "gdn/gdn.h"
#include <stdio.h>

#define FIELD(type, field) printf(#type "." #field " %zu\n", offsetof(type, field));
#define TENSOR(X) X(data) X(batch_stride) X(token_stride) X(head_stride) X(dtype)
#define STATE(X) X(data) X(sequence_stride) X(head_stride) X(dtype)
// clang-format off: it formats this list differently each time
#define ARGS(X) \
  X(struct_size) X(batch) X(tokens) X(heads) X(heads_v) X(key_dim) X(value_dim) X(num_sequences) \
  X(q) X(k) X(v) X(o) X(g) X(beta) X(initial_state) X(final_state) X(state_layout) X(cu_seqlens_dtype) X(cu_seqlens) \
  X(scale) X(flags) X(split) X(profile) X(profile_size) X(workspace) X(workspace_size) X(stream)
// clang-format on

int main(void) {
#define X(field) FIELD(gdn_tensor, field)
  TENSOR(X)
#undef X
#define X(field) FIELD(gdn_state, field)
  STATE(X)
#undef X
#define X(field) FIELD(gdn_forward_args, field)
  ARGS(X)
#undef X
  printf("gdn_tensor.size %zu\ngdn_state.size %zu\ngdn_forward_args.size %zu\n", sizeof(gdn_tensor), sizeof(gdn_state),
         sizeof(gdn_forward_args));
  return 0;
}
