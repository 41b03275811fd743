// The functions of std::string, for the Swift runtime inside the library. The C++ library has them compiled, and its own get their memory
// where the reserve (reserve.c) is not asked; compiled in here they get it by the `operator new` that asks.
#include <string>

#if defined(__GLIBCXX__)
template class std::basic_string<char>;
#endif
