/* gdn: launches the Gated DeltaNet kernels of a bundle (.gdnb) on NVIDIA GPUs.
 *
 * Needs no CUDA header and links no CUDA library: the driver (libcuda.so.1) is opened at the first call that needs it.
 * Set GDN_DRIVER in the environment to name another library: a path, or "emu" for the emulator's.
 *
 * Per token t of v-head h (its k-head is h / (heads_v / heads)), with a state S [K, V]:
 *     S <- exp(g_t) S;   u_t = beta_t (v_t - S^T k_t);   S <- S + k_t u_t^T;   o_t = scale S^T q_t
 *
 * Errors      every function that can fail returns a gdn_status and never throws, prints or aborts. The sentence behind
 * the calling thread's last failure is gdn_last_error_message(); success leaves it alone. Threads     a bundle is
 * immutable: any number of threads may use one at the same time, save for gdn_bundle_close. Versions    structs marked
 * "sized" begin with struct_size: zero the struct and set struct_size to its sizeof. The values of all enumerations are
 * frozen; later versions add to the end of sized structs, and zero there means "as before".
 */
#ifndef GDN_GDN_H
#define GDN_GDN_H

#include <stddef.h>
#include <stdint.h>

#define GDN_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

#define GDN_VERSION_MAJOR 0
#define GDN_VERSION_MINOR 1
#define GDN_VERSION_PATCH 0

/* Version of the library that is loaded: major * 10000 + minor * 100 + patch. */
GDN_API uint32_t gdn_version(void);

typedef enum gdn_status {
  GDN_OK = 0,
  GDN_INVALID_ARGUMENT = 1,    /* an argument is null, out of range, misaligned or contradicts another */
  GDN_UNSUPPORTED = 2,         /* the bundle has no kernel for these dimensions and types */
  GDN_WORKSPACE_TOO_SMALL = 3, /* the workspace is smaller than gdn_forward_workspace_size says */
  GDN_FILE_ERROR = 4,          /* the bundle's file cannot be opened or mapped */
  GDN_BUNDLE_CORRUPT = 5,      /* the bundle is truncated, or its contents contradict each other or their hashes */
  GDN_BUNDLE_VERSION = 6,      /* the bundle is of another version than this library reads */
  GDN_NO_DRIVER = 7,           /* the CUDA driver library is missing or lacks a function */
  GDN_DRIVER_TOO_OLD = 8,      /* the CUDA driver is older than the kernel's image needs */
  GDN_NO_CONTEXT = 9,          /* the calling thread has no current CUDA context, or there is no such device */
  GDN_WRONG_DEVICE = 10,       /* the bundle has no image for the current device's architecture */
  GDN_DRIVER_ERROR = 11,       /* a CUDA driver call failed; the message names the call and the driver's error */
  GDN_OUT_OF_MEMORY = 12       /* host memory ran out */
} gdn_status;

/* A constant sentence for a status; for an unknown one, a sentence that says so. Never NULL. */
GDN_API const char *gdn_status_string(gdn_status status);

/* What went wrong in the calling thread's last failing call; "" if none has failed. Valid until the thread's next
 * failure. */
GDN_API const char *gdn_last_error_message(void);

/* ---- Bundles ---- */

typedef struct gdn_bundle gdn_bundle;

/* Opens a bundle. _open maps the file (do not truncate it while open); _from_memory copies nothing: the caller keeps
 * the `size` bytes at `data` unchanged until the bundle is closed. All offsets and sizes are checked here, each image's
 * hash when it is first loaded. Needs no driver. On failure *bundle is NULL. Close with gdn_bundle_close (NULL is
 * fine), once no thread uses the bundle and no kernel of it still runs or is part of a graph that will be launched.
 * GDN_INVALID_ARGUMENT, GDN_FILE_ERROR, GDN_BUNDLE_CORRUPT, GDN_BUNDLE_VERSION, GDN_OUT_OF_MEMORY. */
GDN_API gdn_status gdn_bundle_open(const char *path, gdn_bundle **bundle);
GDN_API gdn_status gdn_bundle_from_memory(const void *data, size_t size, gdn_bundle **bundle);
GDN_API void gdn_bundle_close(gdn_bundle *bundle);

/* Checks the hash of the whole bundle and of every image. GDN_BUNDLE_CORRUPT names the first that differs. */
GDN_API gdn_status gdn_bundle_verify(const gdn_bundle *bundle);

/* Loads every kernel that fits the current device into the current context, so that later launches find them ready.
 * Without it a kernel is loaded by the first gdn_forward that needs it, which then takes milliseconds; call it before
 * timing or before capturing a graph. Once per context; repeating it is cheap. GDN_BUNDLE_CORRUPT, GDN_NO_DRIVER,
 * GDN_DRIVER_TOO_OLD, GDN_NO_CONTEXT, GDN_WRONG_DEVICE, GDN_DRIVER_ERROR. */
GDN_API gdn_status gdn_bundle_load(gdn_bundle *bundle);

/* Canonical JSON that the compiler wrote: versions and flags. NUL-terminated, valid until the bundle is closed. */
GDN_API const char *gdn_bundle_metadata(const gdn_bundle *bundle);

typedef enum gdn_dtype { GDN_F32 = 0, GDN_BF16 = 1, GDN_F16 = 2, GDN_INT32 = 3, GDN_INT64 = 4 } gdn_dtype;

/* Order of the two dimensions of a state matrix in memory, slowest first. */
typedef enum gdn_layout {
  GDN_K_FIRST = 0, /* [.., K, V]: V contiguous */
  GDN_V_FIRST = 1  /* [.., V, K]: K contiguous */
} gdn_layout;

/* One kernel of a bundle. Sized; strings are valid until the bundle is closed. */
typedef struct gdn_kernel_info {
  size_t struct_size;
  const char *operation;      /* "forward" */
  const char *arch;           /* "sm_90a" */
  const char *schedule;       /* the parameters the template was instantiated with, "name=value name=value" */
  int32_t key_dim, value_dim; /* K, V */
  int32_t chunk;              /* tokens */
  int32_t io;                 /* gdn_dtype of q, k, v and o */
  int32_t state_layout;       /* gdn_layout */
  int32_t split;              /* blocks that share one head's V */
  int32_t profile;            /* 1 if it writes clock stamps */
  int32_t threads;            /* of a block */
  int32_t registers;          /* per thread */
  int32_t spill_bytes, stack_bytes;
  int32_t shared_bytes; /* dynamic shared memory of a block */
  int32_t elf_abi;      /* ABI version of the ELF image */
  int32_t min_driver;   /* CUDA version the driver must have, major * 1000 + minor * 10 */
  uint64_t image_bytes; /* of the ELF image */
  uint32_t features;    /* flags of the calls that it serves: GDN_NORMALISE_QK, GDN_CHECKPOINTS_*. Version 0.1.0 ended
                           before it */
} gdn_kernel_info;

GDN_API size_t gdn_bundle_kernel_count(const gdn_bundle *bundle); /* 0 for NULL */
/* Kernels are sorted by key. GDN_INVALID_ARGUMENT if index is not below the count. */
GDN_API gdn_status gdn_bundle_kernel_info(const gdn_bundle *bundle, size_t index, gdn_kernel_info *info);

/* ---- Devices ---- */

/* Sized. */
typedef struct gdn_device_info {
  size_t struct_size;
  int32_t driver_version; /* CUDA version of the driver, major * 1000 + minor * 10: 13000 is 13.0 */
  int32_t device_count;
  int32_t sm_count;
  int32_t compute_capability; /* major * 10 + minor: 90 for sm_90a */
  char name[256];
  char driver_path[256]; /* the library that was opened, as it was named to the loader */
} gdn_device_info;

/* Describes a device by its ordinal, without creating a context. If the ordinal is not below the device count (0 where
 * there is no GPU), driver_version, device_count and driver_path are filled in and the result is GDN_NO_CONTEXT.
 * GDN_INVALID_ARGUMENT, GDN_NO_DRIVER, GDN_NO_CONTEXT, GDN_DRIVER_ERROR. */
GDN_API gdn_status gdn_device_query(int32_t device, gdn_device_info *info);

/* ---- Forward ---- */

/* A tensor on the device, [B, T, heads, columns], or [B, T, heads] for g and beta. Strides are in elements and at least
 * 0, which repeats what is read; columns are contiguous; the stride of an axis of length 1 is not looked at; a kernel
 * may ask for adjacent heads of g and beta (head_stride 1, else GDN_UNSUPPORTED). With B > 1
 * the batch must be one packed token axis: batch_stride == T * token_stride. Data may be NULL where the tensor has no
 * elements. */
typedef struct gdn_tensor {
  void *data;
  int64_t batch_stride, token_stride, head_stride;
  int32_t dtype; /* gdn_dtype */
} gdn_tensor;

/* States on the device, [N, heads_v, K, V] or [N, heads_v, V, K]; each matrix is contiguous. Address and strides are
 * multiples of 16 bytes. Data is NULL for none. */
typedef struct gdn_state {
  void *data;
  int64_t sequence_stride, head_stride; /* in elements */
  int32_t dtype;                        /* GDN_F32, GDN_BF16 or GDN_F16 */
} gdn_state;

/* One fp32 or bf16 or fp16 value a v-head, [HV], on the device, contiguous. Data is NULL for none. */
typedef struct gdn_head_values {
  const void *data;
  int32_t dtype; /* GDN_F32, GDN_BF16 or GDN_F16 */
} gdn_head_values;

/* Bits of gdn_forward_args.flags: what g and beta hold instead; what is done to q and k. */
enum {
  GDN_BETA_LOGITS = 1 << 8,  /* beta is sigmoid(beta) */
  GDN_BETA_DOUBLED = 1 << 9, /* beta counts twice: with GDN_BETA_LOGITS, 2 sigmoid(beta) */
  GDN_G_IS_DECAY = 1 << 10,  /* g is the decay itself, exp of the log decay, in [0, 1]; 0 forgets all */
  /* Rows of q and k are divided by sqrt(sum of squares + 1e-6), by the variant "l2norm" of a kernel. fp16 keeps its
   * precision where keys have norms between 2^-8 and 2^8. */
  GDN_NORMALISE_QK = 1 << 11,
  /* One of these: `checkpoints` is written, by the variant "checkpoints" of a kernel. Row i of a sequence is its state
   * after (i + 1) * checkpoint_every tokens, or before token i * checkpoint_every: the first one is the initial state.
   */
  GDN_CHECKPOINTS_AFTER = 1 << 12,
  GDN_CHECKPOINTS_BEFORE = 1 << 13
};

/* How long sequences are cut over the SMs: bits of gdn_forward_args.flags, one of the first four. A kernel that takes
 * no plan cuts nothing. Cuts are made on the device, from cu_seqlens and gates: a captured graph makes them anew.
 *   - A transition changes the order of operations, at the precision of the uncut chain (states meet in twice 16 bits).
 *   - A warm-up starts a piece in zeros, so many tokens early that gates have let all before them decay to less than
 *     2^-24: equal to fp32's resolution if |k| <= 1 and beta <= 2, so that it needs GDN_KEYS_NORMALISED.
 *   - A hand-over passes the state on through memory and changes no bit. */
typedef enum gdn_forward_flags {
  GDN_CUT_AUTO = 0,  /* warm-ups where gates decay and GDN_KEYS_NORMALISED is set, transitions elsewhere */
  GDN_CUT_OFF = 1,   /* no cuts and no workspace for them: one SM runs a whole sequence of a head */
  GDN_CUT_EXACT = 2, /* no warm-ups */
  GDN_CUT_FAST = 3,  /* warm-ups until e^-10 is left; needs GDN_KEYS_NORMALISED */
  GDN_CUT_MODES = 3, /* mask of the above */
  /* Parallel cuts every 2,048 tokens of a sequence and nowhere else: its results depend neither on the batch that it is
   * in, nor on the number of heads, nor on the GPU's SMs. Not with GDN_CUT_OFF. */
  GDN_CUT_INVARIANT = 4,
  /* |k| <= 1 and beta <= 2 for every token; GDN_NORMALISE_QK and GDN_BETA_LOGITS together say so too */
  GDN_KEYS_NORMALISED = 8
} gdn_forward_flags;

/* Columns of a row of stamps: clocks of the SM but where it says otherwise. Those of a chunk are of the last chunk of
 * the piece that the first warpgroup of a role has had in hand, 0 where it has had none. */
typedef enum gdn_profile_column {
  GDN_PROFILE_BEGIN_NS = 0, /* the GPU's timer as the piece begins */
  GDN_PROFILE_BEGIN = 1,
  GDN_PROFILE_FIRST_CHUNK = 2,
  GDN_PROFILE_LAST_CHUNK = 3, /* its end */
  GDN_PROFILE_STORED = 4,     /* of the state */
  GDN_PROFILE_CHUNKS = 5,     /* how many */
  GDN_PROFILE_KIND = 6,       /* chunks for the state alone, plus 65536 for each hop */
  GDN_PROFILE_END_NS = 7,
  GDN_PROFILE_AUX_BEGIN = 8,    /* preparing a chunk: it begins; then, each when it is there, */
  GDN_PROFILE_AUX_KQ = 9,       /* K and Q in shared memory */
  GDN_PROFILE_AUX_KK = 10,      /* K K^T */
  GDN_PROFILE_AUX_SOLVED = 11,  /* inverses of the diagonal blocks */
  GDN_PROFILE_AUX_T = 12,       /* T */
  GDN_PROFILE_AUX_QK = 13,      /* Q K^T */
  GDN_PROFILE_AUX_P = 14,       /* P */
  GDN_PROFILE_STATE_BEGIN = 16, /* the chain's part of a chunk: it begins; then, each when it is there, */
  GDN_PROFILE_STATE_KS = 17,    /* K S and Q S */
  GDN_PROFILE_STATE_W = 18,     /* W, and T from the other role */
  GDN_PROFILE_STATE_U = 19,     /* U */
  GDN_PROFILE_STATE_P = 20,     /* P from the other role */
  GDN_PROFILE_STATE_S = 21,     /* the new state */
  GDN_PROFILE_COLUMNS = 24,
  GDN_PROFILE_ROWS = 16
} gdn_profile_column;

/* Sized: without what stands behind stream it is the struct of version 0.1.0, which is still taken. All addresses but
 * that of the struct are device addresses. */
typedef struct gdn_forward_args {
  size_t struct_size;

  int64_t batch;         /* B; 1 if cu_seqlens is given */
  int64_t tokens;        /* T; batch * tokens <= 2^31 - 2^16 */
  int64_t heads;         /* H, of q and k */
  int64_t heads_v;       /* HV, of v, o, g and beta; a multiple of H */
  int64_t key_dim;       /* K */
  int64_t value_dim;     /* V */
  int64_t num_sequences; /* N; if cu_seqlens is NULL, batch or 0 */

  /* q, k, v and o have one dtype, GDN_BF16 or GDN_F16; their addresses and strides are multiples of 16 bytes. */
  gdn_tensor q, k; /* [B, T, H, K] */
  gdn_tensor v, o; /* [B, T, HV, V]; o is written, and its rows do not overlap */
  gdn_tensor g;    /* [B, T, HV], log decay, natural logarithm, <= 0; GDN_F32, GDN_BF16 or GDN_F16 */
  gdn_tensor beta; /* [B, T, HV], write strength; GDN_F32, GDN_BF16 or GDN_F16 */

  gdn_state initial_state; /* NULL: zeros */
  gdn_state final_state;   /* NULL: not written. May be initial_state itself: same address, strides and dtype */
  int32_t state_layout;    /* gdn_layout of both */

  int32_t cu_seqlens_dtype; /* GDN_INT32 or GDN_INT64 */
  /* [N + 1] offsets of a packed batch: sequence i is tokens [cu[i], cu[i + 1]), may be empty, and cu[N] may be less
   * than T: o is written as zero there. NULL: dense, each row of the batch is a sequence. The host does not read the
   * offsets, so their values are not checked here: a kernel clamps them to [0, T] and takes a decreasing pair for an
   * empty sequence. A captured graph may be replayed with other offsets. */
  const void *cu_seqlens;

  float scale;    /* usually K^-0.5; 0 is legal */
  uint32_t flags; /* 0, or of the bits above */
  /* Blocks that share one head's V: 0 picks the smallest split of the bundle where work may be cut, unless the
   * sequences are so short and the heads so few that a split does better; where nothing may be cut, the largest with
   * which all work runs at once, else the smallest. */
  uint32_t split;
  /* NULL, or int64 [SMs, GDN_PROFILE_ROWS, GDN_PROFILE_COLUMNS]: uses the variant of the kernel that writes stamps, a
   * row for each of the first 15 pieces of work of a block, and one for the last of all. A bundle may have none. */
  void *profile;
  size_t profile_size; /* bytes at profile: at least those of that array */

  void *workspace;       /* may be NULL if the size needed is 0; else a multiple of 16 */
  size_t workspace_size; /* bytes */

  void *stream; /* CUstream or cudaStream_t of the current context; NULL is the default stream */

  /* With a_log, g is the input of the gate: log decay = -exp(a_log) softplus(g + dt_bias). dt_bias may be NULL: 0. */
  gdn_head_values a_log, dt_bias;

  /* [N] on the device, or NULL: the slot of a pool that sequence i reads its initial state from and the one that it
   * writes its final state to; initial_state and final_state then are pools of state_slots states, a sequence_stride
   * from each other. Without read_indices sequence i reads state i; without write_indices it writes where it reads. An
   * index outside [0, state_slots), such as -1, reads zeros and writes nothing. A sequence without tokens writes
   * nothing either: only without indices it returns its initial state. Slots that no index names are not touched, and
   * one that a sequence writes is no other's to read or write. The host does not read the indices, so that a captured
   * graph may be replayed with others. */
  const void *read_indices, *write_indices;
  int64_t state_slots;         /* 1 to 2^31 - 1; 0 without indices */
  int32_t state_indices_dtype; /* GDN_INT32 or GDN_INT64 */

  /* With GDN_CHECKPOINTS_AFTER or GDN_CHECKPOINTS_BEFORE: rows [checkpoint_rows, heads_v, K, V], in state_layout, a
   * sequence_stride from each other. A sequence of L tokens has L / checkpoint_every of them, rounded down where they
   * are states after tokens, and up where they are states before; its first row is checkpoint_starts[i], on the device;
   * without checkpoint_starts, which a packed batch needs, those of sequence i + 1 follow those of sequence i. Rows
   * outside [0, checkpoint_rows) are not written, nor any of a sequence whose first row lies there. */
  gdn_state checkpoints;
  int64_t checkpoint_rows;         /* 0 to 2^31 - 1 */
  int64_t checkpoint_every;        /* tokens, a multiple of 64 */
  const void *checkpoint_starts;   /* [N], or NULL */
  int32_t checkpoint_starts_dtype; /* GDN_INT32 or GDN_INT64 */
} gdn_forward_args;

/* How many bytes of workspace gdn_forward needs on any device: for dimensions, dtype of q, state_layout, split, flags,
 * and whether profile and cu_seqlens are NULL. Needs no driver, and looks at nothing on the device. The contents need
 * not be set, and are of no use after the call; calls that may overlap need workspaces of their own.
 * With P SMs of the largest GPU of the bundle's architecture, at most
 *     2 P matrices of 4 K^2 bytes, 5 P states of 4 K V and 600 P items of 64
 * (K = V = 128 and P = 132: 70 MB), less for few tokens, and none where batch and tokens show that nothing will be cut;
 * with GDN_CUT_INVARIANT heads_v T / 2048 matrices and twice as many states. GDN_INVALID_ARGUMENT, GDN_UNSUPPORTED. */
GDN_API gdn_status gdn_forward_workspace_size(const gdn_bundle *bundle, const gdn_forward_args *args, size_t *bytes);

/* Enqueues the forward on args->stream. Does not allocate device memory, synchronise, or change the context, so that it
 * can be captured in a graph; loads the kernel first if neither gdn_bundle_load nor an earlier call has done so. All
 * tensors must stay valid until the stream has passed the launch. Sequences without tokens return their initial state
 * as it is, but that a zero may lose its sign; in pools they leave their slot as it is.
 * The kernel runs on the device of the current context, for which the bundle must have an image.
 * GDN_INVALID_ARGUMENT, GDN_UNSUPPORTED, GDN_WORKSPACE_TOO_SMALL, and all of gdn_bundle_load. */
GDN_API gdn_status gdn_forward(gdn_bundle *bundle, const gdn_forward_args *args);

/* GDN_OK if gdn_forward would take the call with enough workspace; else what it would return. Loads the kernels,
 * enqueues nothing. For callers that have another kernel to fall back to. */
GDN_API gdn_status gdn_forward_check(gdn_bundle *bundle, const gdn_forward_args *args);

/* Strides of contiguous tensors; columns is 1 for g and beta. */
static inline gdn_tensor gdn_contiguous(void *data, gdn_dtype dtype, int64_t tokens, int64_t heads, int64_t columns) {
  gdn_tensor tensor;
  tensor.data = data;
  tensor.batch_stride = tokens * heads * columns;
  tensor.token_stride = heads * columns;
  tensor.head_stride = columns;
  tensor.dtype = dtype;
  return tensor;
}

static inline gdn_state gdn_contiguous_state(void *data, gdn_dtype dtype, int64_t heads_v, int64_t key_dim,
                                             int64_t value_dim) {
  gdn_state state;
  state.data = data;
  state.sequence_stride = heads_v * key_dim * value_dim;
  state.head_stride = key_dim * value_dim;
  state.dtype = dtype;
  return state;
}

#ifdef __cplusplus
}
#endif

#endif /* GDN_GDN_H */
