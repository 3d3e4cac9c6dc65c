"""What the profile variant of the kernel stamps, as far as clocks go; gdn/gdn.h describes its rows."""

import ctypes
import statistics

from cases import SCALE

ROWS, COLUMNS = 16, 24
BEGIN_NS, BEGIN, FIRST_CHUNK, LAST_CHUNK, STORED, CHUNKS, _, END_NS = range(8)


def decode(rows):
    """Clocks a chunk and MHz of the longest piece of each block, medians; None if nothing was stamped. `rows`
    [SMs, ROWS, COLUMNS] are lists."""
    clocks, megahertz = [], []
    for block in rows:
        piece = max(block, key=lambda row: row[CHUNKS])
        if piece[CHUNKS] > 0 and piece[END_NS] > piece[BEGIN_NS]:
            clocks.append((piece[LAST_CHUNK] - piece[FIRST_CHUNK]) / piece[CHUNKS])
            megahertz.append(1e3 * (piece[STORED] - piece[BEGIN]) / (piece[END_NS] - piece[BEGIN_NS]))
    return (statistics.median(clocks), statistics.median(megahertz)) if clocks else None


def clocks(library, case, flags):
    """Runs gdn_forward with stamps, and decodes those of the last of three runs. None where no kernel has stamps."""
    import torch

    c, device = library, case.q.device
    info = c.DeviceInfo()
    c.check(c.library().gdn_device_query(device.index or 0, ctypes.byref(info)))
    stamps = torch.zeros(info.sm_count, ROWS, COLUMNS, dtype=torch.int64, device=device)
    o, state = torch.empty_like(case.v), torch.empty_like(case.state)

    def tensor(x, dtype):
        return c.Tensor(x.data_ptr(), x.stride(0), x.stride(1), x.stride(2), dtype)

    args = c.ForwardArgs(
        batch=1, tokens=case.q.shape[1], heads=case.heads, heads_v=case.heads_v, key_dim=case.q.shape[3],
        value_dim=case.v.shape[3], num_sequences=len(case.lengths), q=tensor(case.q, c.BF16), k=tensor(case.k, c.BF16),
        v=tensor(case.v, c.BF16), o=tensor(o, c.BF16), g=tensor(case.g, c.F32), beta=tensor(case.beta, c.F32),
        initial_state=c.State(case.state.data_ptr(), case.state.stride(0), case.state.stride(1), c.F32),
        final_state=c.State(state.data_ptr(), state.stride(0), state.stride(1), c.F32), state_layout=c.K_FIRST,
        cu_seqlens=case.cu64.data_ptr(), cu_seqlens_dtype=c.INT64, scale=SCALE, flags=flags,
        profile=stamps.data_ptr(), profile_size=stamps.nbytes)
    needed = ctypes.c_size_t()
    try:
        c.check(c.library().gdn_forward_workspace_size(c.bundle(), ctypes.byref(args), ctypes.byref(needed)))
    except c.Error:  # the bundle has stamps for other dimensions or splits
        return None
    workspace = torch.empty(needed.value, dtype=torch.uint8, device=device)
    args.workspace, args.workspace_size = workspace.data_ptr(), needed.value
    args.stream = torch.cuda.current_stream().cuda_stream if device.type == "cuda" else None
    for _ in range(3):
        stamps.zero_()
        c.check(c.library().gdn_forward(c.bundle(), ctypes.byref(args)))
    return decode(stamps.tolist())
