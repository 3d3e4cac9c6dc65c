// The same call without the way through torch's dispatcher: a function of Python that reads tensors by DLPack's table
// of functions. Of Python, its limited API alone: one library for every version from 3.10 on.
#define Py_LIMITED_API 0x030a0000
#include <Python.h> // first, as it asks to be

#include "call.h"
#include <ATen/dlpack.h>
#include <exception>
#include <gdn/gdn.h>

namespace gdn::python {
namespace {

DLPackDLTensorFromPyObjectNoSync describe = nullptr;
PyObject *tensorType = nullptr, *parameterType = nullptr;

int32_t dtypeOf(const DLDataType &type) {
  int bits = type.lanes == 1 ? type.bits : 0;
  switch (type.code) {
  case kDLFloat:
    return bits == 32 ? GDN_F32 : bits == 16 ? GDN_F16 : -1;
  case kDLBfloat:
    return bits == 16 ? GDN_BF16 : -1;
  case kDLInt:
    return bits == 32 ? GDN_INT32 : bits == 64 ? GDN_INT64 : -1;
  default:
    return -1;
  }
}

// Whether it is None or a tensor in memory; of no class of its own, which could mean something else by it, and not
// lazily negated, as the imaginary part of a conjugate is, which lies between real ones.
bool readTensor(PyObject *object, View &view) {
  if (object == Py_None)
    return true;
  PyObject *type = PyObject_Type(object);
  Py_DecRef(type);
  DLTensor x;
  if ((type != tensorType && type != parameterType) || describe(object, &x) != 0 || x.ndim == 0 ||
      x.strides[x.ndim - 1] != 1)
    return false;
  auto kind = x.device.device_type == kDLCUDA  ? Device::Cuda
              : x.device.device_type == kDLCPU ? Device::Cpu
                                               : Device::Other;
  view = {static_cast<char *>(x.data) + x.byte_offset,
          x.shape,
          x.strides,
          x.ndim,
          dtypeOf(x.dtype),
          {kind, x.device.device_id}};
  return true;
}

// The operator's arguments, one after the other.
class Reader {
public:
  explicit Reader(PyObject *const *arguments) : next(arguments) {}

  template <typename... Views> bool tensors(Views &...views) { return (readTensor(*next++, views) && ...); }

  bool number(int64_t &value) {
    value = PyLong_AsLongLong(*next++);
    return value != -1 || !PyErr_Occurred();
  }

  bool number(double &value) {
    value = PyFloat_AsDouble(*next++);
    return value != -1 || !PyErr_Occurred();
  }

  bool truth(bool &value) {
    int truth = PyObject_IsTrue(*next++);
    value = truth > 0;
    return truth >= 0;
  }

private:
  PyObject *const *next;
};

bool readOperands(PyObject *const *arguments, Operands &x) {
  Reader read(arguments);
  return read.tensors(x.q, x.k, x.v, x.g, x.beta, x.o, x.initialState, x.finalState, x.offsets) &&
         read.number(x.scale) && read.truth(x.stateVFirst) && read.number(x.split) && read.number(x.flags) &&
         read.tensors(x.aLog, x.dtBias, x.readIndices, x.writeIndices, x.checkpoints) &&
         read.number(x.checkpointEvery) && read.tensors(x.checkpointStarts);
}

// True once it is done. False if the operator is to be asked: it serves more, and says what is wrong.
template <void (*function)(const Operands &)> PyObject *call(PyObject *, PyObject *const *arguments, Py_ssize_t count) {
  Operands operands;
  bool done = count == 20 && readOperands(arguments, operands);
  PyErr_Clear();
  if (done) {
    PyThreadState *thread = PyEval_SaveThread(); // a full queue of the GPU makes a launch wait
    try {
      function(operands);
    } catch (const std::exception &) {
      done = false;
    }
    PyEval_RestoreThread(thread);
  }
  return PyBool_FromLong(done);
}

template <void (*function)(const Operands &)> PyObject *makeFunction() {
  static PyMethodDef method = {"", reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(&call<function>)),
                               METH_FASTCALL, nullptr};
  return PyCFunction_New(&method, nullptr);
}

} // namespace
} // namespace gdn::python

// The functions that launch and check, for torch's types of tensors and the capsule of their table; none if the table
// is of another version.
extern "C" GDN_API PyObject *gdn_torch_direct(PyObject *tensor, PyObject *parameter, PyObject *capsule) {
  using namespace gdn::python;
  auto *table = static_cast<const DLPackExchangeAPI *>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
  if (!table)
    return nullptr;
  if (table->header.version.major != DLPACK_MAJOR_VERSION || !table->dltensor_from_py_object_no_sync)
    return Py_BuildValue("(OO)", Py_None, Py_None);
  describe = table->dltensor_from_py_object_no_sync;
  tensorType = tensor; // torch lives as long as the process
  parameterType = parameter;
  return Py_BuildValue("(NN)", makeFunction<forward>(), makeFunction<check>());
}
