// Kernels that g++ has compiled, by name, and how they run.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace lockstep::test {

struct EmulatedKernel {
  // The call of one thread, with the arguments that these addresses name.
  std::function<std::function<void()>(void** arguments)> bind;
  // Without: the threads of a block are calls one after the other. With: they take turns from
  // barrier to barrier. Under ThreadSanitizer they are spread over two threads of the host, and
  // with barriers each is one, so that it sees what no barrier orders.
  bool has_barriers = false;
};

// Runs all threads of all blocks.
void RunEmulated(const std::function<void()>& thread, bool has_barriers, unsigned int blocks,
                 unsigned int threads);

// Null: there is none of this name.
const EmulatedKernel* FindEmulatedKernel(const std::string& name);
std::vector<std::string> EmulatedKernelNames();

// For RegisterEmulatedKernel.
template <typename... Parameters>
std::function<std::function<void()>(void**)> Binder(void (*kernel)(Parameters...)) {
  return [kernel](void** arguments) -> std::function<void()> {
    return [&]<size_t... kIndex>(std::index_sequence<kIndex...>)->std::function<void()> {
      return [kernel,
              values = std::tuple<Parameters...>(*static_cast<Parameters*>(arguments[kIndex])...)] {
        std::apply(kernel, values);
      };
    }
    (std::index_sequence_for<Parameters...>());
  };
}

// At namespace scope: `const RegisterEmulatedKernel kAdd("lockstep_add", {Binder(&lockstep_add)});`
struct RegisterEmulatedKernel {
  RegisterEmulatedKernel(const char* name, EmulatedKernel kernel);
};

}  // namespace lockstep::test
