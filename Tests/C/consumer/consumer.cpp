// The installed C++ wrapper compiles, links and reaches the library from a separate project.
#include <llvs.hpp>
#include <cstdio>

int main() {
    std::printf("%s from C++\n", llvs_version_string());
    return llvs_version_number() == LLVS_VERSION_NUMBER ? 0 : 1;
}
