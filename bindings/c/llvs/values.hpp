// Reading and writing values in parts. Part of llvs.hpp.
#ifndef LLVS_VALUES_HPP
#define LLVS_VALUES_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "error.hpp"

namespace llvs {

/// Reads one value in parts; see llvs_value_reader.
class ValueReader {
public:
    /// Takes ownership of a handle.
    ValueReader(llvs_value_reader *raw, std::uint64_t size, std::string stored_version)
        : handle_(raw), size_(size), stored_version_(std::move(stored_version)) {}

    /// The size of the value in bytes.
    std::uint64_t size() const { return size_; }
    /// The version that stored it.
    const std::string &stored_version() const { return stored_version_; }
    /// Copies the bytes from `offset` on and returns how many: fewer than `capacity` only at the end.
    std::size_t read(std::uint64_t offset, void *buffer, std::size_t capacity) const {
        std::size_t size = 0;
        detail::run([&](llvs_error **error) { return llvs_value_reader_read(raw(), offset, buffer, capacity, &size, error); });
        return size;
    }
    /// Returns at most `length` bytes from `offset` on.
    std::string read(std::uint64_t offset, std::size_t length) const {
        std::uint64_t left = offset < size_ ? size_ - offset : 0;
        std::string part(length < left ? length : static_cast<std::size_t>(left), '\0');
        part.resize(read(offset, part.empty() ? nullptr : &part[0], part.size()));
        return part;
    }
    /// The handle, for calls of the C interface; this object owns it.
    llvs_value_reader *raw() const { return handle_.get(); }

private:
    detail::Handle<llvs_value_reader, llvs_value_reader_free> handle_;
    std::uint64_t size_;
    std::string stored_version_;
};

/// A value to set whose bytes are read piece by piece; see llvs_value_source. If `read` throws, the call that makes the version throws the
/// same exception, and nothing is stored.
struct ValueSource {
    /// Writes the next bytes to the buffer and returns how many, at most `capacity`; 0 ends the value.
    using Read = std::function<std::size_t(std::uint8_t *buffer, std::size_t capacity)>;

    std::string id;
    Read read;
    /// Bytes in total; 0: not known beforehand.
    std::uint64_t size = 0;

    /// The rest of a stream, which must live until the version is made; throws std::ios_base::failure if it fails.
    static ValueSource stream(std::string id, std::istream &stream, std::uint64_t size = 0) {
        return {std::move(id), [&stream](std::uint8_t *buffer, std::size_t capacity) {
                    stream.read(reinterpret_cast<char *>(buffer), static_cast<std::streamsize>(capacity));
                    if (stream.bad()) throw std::ios_base::failure("a stream failed while a value was read from it");
                    return static_cast<std::size_t>(stream.gcount());
                }, size};
    }
};

namespace detail {

/// Sources in their borrowed form, for one call.
class Sources {
public:
    explicit Sources(const std::vector<ValueSource> &sources) {
        for (const ValueSource &source : sources)
            raw_.push_back({bytes(source.id), source.size, &Sources::read, const_cast<ValueSource *>(&source)});
    }
    Sources(const Sources &) = delete;
    Sources &operator=(const Sources &) = delete;

    void put_into(llvs_version_options &options) const {
        options.sources = raw_.empty() ? nullptr : raw_.data();
        options.source_count = raw_.size();
        options.source_size = sizeof(llvs_value_source);
    }
    /// An llvs_read_fn for a ValueSource.
    static llvs_status read(void *payload, std::uint8_t *buffer, std::size_t capacity, std::size_t *size, llvs_error **error) {
        return guard(error, [&] {
            *size = static_cast<const ValueSource *>(payload)->read(buffer, capacity);
            return *size ? LLVS_OK : LLVS_END;
        });
    }


private:
    std::vector<llvs_value_source> raw_;
};

inline std::optional<ValueReader> reader(llvs_value_reader *raw, std::uint64_t size, const llvs_version_id &stored) {
    if (!raw) return std::nullopt;
    return ValueReader(raw, size, string(stored));
}

} // namespace detail

} // namespace llvs

#endif
