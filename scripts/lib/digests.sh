# digests_program <program>: links Benchmarks/digests with the library and with its own objects for SHA-256.
digests_program() {
    local objects="$build/swift/release/CLLVSShims.build"
    cc -std=gnu99 -O2 -Wall -Wextra -Werror -Iinclude -ISources/CLLVSShims/include Benchmarks/digests/digests.c \
        "$objects/sha256.c.o" "$objects/library.c.o" -o "$1" -L"$build/lib" -lllvs -ldl -pthread -Wl,-rpath,"$build/lib"
}
