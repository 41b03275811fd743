// Functions that the tests of llvs.hpp share.
#ifndef EXPECT_HPP
#define EXPECT_HPP

#include <cstdio>
#include <cstdlib>
#include <string>

#include "llvs.hpp"

#define EXPECT(condition)                                                          \
    do {                                                                           \
        if (!(condition)) {                                                        \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            std::exit(1);                                                          \
        }                                                                          \
    } while (0)

/// The code that a call throws; LLVS_OK if it throws nothing.
template <typename Body>
llvs_status code_of(Body body) {
    try {
        body();
    } catch (const llvs::Error &error) {
        EXPECT(std::string(error.what()).size() > 0);
        return error.code();
    }
    return LLVS_OK;
}

/// An exception of the test's own, which it can recognise.
struct Thrown {
    int number;
};

/// The number of the Thrown that a call throws; 0 if it throws nothing.
template <typename Body>
int thrown_by(Body body) {
    try {
        body();
    } catch (const Thrown &thrown) {
        return thrown.number;
    }
    return 0;
}

#endif
