// Places of the host that hold named files.
// Part of llvs.hpp.
#ifndef LLVS_FILES_HPP
#define LLVS_FILES_HPP

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "host.hpp"

namespace llvs {

/// A place that holds named files; see llvs_files_callbacks. If a method throws, so does the call that runs it; an Error with a code that
/// is named there keeps its meaning for the exchange.
class Files {
public:
    virtual ~Files() = default;

    /// Adds (Reply::file) all files of a directory, by their last components.
    virtual void list(std::string_view directory, Reply &reply) = 0;
    /// Replies to question 0 (Reply::set, for large files Reply::set_source) with the file, or with `size` bytes of it if that is not 0;
    /// not at all if it is missing.
    virtual void read(std::string_view name, std::uint64_t offset, std::uint64_t size, Reply &reply) = 0;
    /// Makes a file, of which readers never see a part. Returns false if a file of that name exists and must not be replaced. The reply
    /// says whether the call has been cancelled.
    virtual bool publish(std::string_view name, Outgoing &file, bool replaces, Reply &reply) = 0;
    /// Removes a file, if there is one.
    virtual void remove(std::string_view name) = 0;
    /// Called when the exchange has finished with the files.
    virtual void close() {}

    /// Whether `read` can return parts of files; else its offset and size are always 0.
    virtual bool has_ranges() const { return true; }
    /// Whether, if two devices publish one name at once, `publish` fails for one of them.
    virtual bool is_exclusive() const { return true; }
};

namespace detail {

/// Files as callbacks.
struct FilesCallbacks {
    static Files &files(void *payload) { return target<Files>(payload); }

    static llvs_status list(void *payload, const llvs_bytes *directory, llvs_reply *reply, llvs_error **error) {
        return guard(error, [&]() -> llvs_status {
            Reply to(reply);
            files(payload).list(view(*directory), to);
            return LLVS_OK;
        });
    }
    static llvs_status read(void *payload, const llvs_bytes *name, std::uint64_t offset, std::uint64_t size, llvs_reply *reply,
                            llvs_error **error) {
        return guard(error, [&]() -> llvs_status {
            Reply to(reply);
            files(payload).read(view(*name), offset, size, to);
            return LLVS_OK;
        });
    }
    static llvs_status publish(void *payload, const llvs_bytes *name, llvs_bool replaces, llvs_outgoing *outgoing, llvs_reply *reply,
                               llvs_error **error) {
        return guard(error, [&]() -> llvs_status {
            Reply to(reply);
            Outgoing file(outgoing);
            return files(payload).publish(view(*name), file, replaces != 0, to) ? LLVS_OK : LLVS_PASS;
        });
    }
    static llvs_status remove(void *payload, const llvs_bytes *name, llvs_error **error) {
        return guard(error, [&]() -> llvs_status { files(payload).remove(view(*name)); return LLVS_OK; });
    }
    static llvs_status close(void *payload, llvs_error **error) {
        return guard(error, [&]() -> llvs_status { files(payload).close(); return LLVS_OK; });
    }
};

} // namespace detail

/// Makes a transport over files of the host. `name`: for messages, and to identify what a store remembers about the place; different for
/// each place.
inline HostTransport on_files(std::shared_ptr<Files> files, std::string_view name) {
    if (!files) throw std::invalid_argument("a transport over files needs Files");
    llvs_files_callbacks callbacks = LLVS_FILES_CALLBACKS_INIT;
    callbacks.traits = (files->has_ranges() ? 0u : static_cast<llvs_files_traits>(LLVS_FILES_WITHOUT_RANGES)) |
                       (files->is_exclusive() ? 0u : static_cast<llvs_files_traits>(LLVS_FILES_NOT_EXCLUSIVE));
    callbacks.list = detail::FilesCallbacks::list;
    callbacks.read = detail::FilesCallbacks::read;
    callbacks.publish = detail::FilesCallbacks::publish;
    callbacks.remove = detail::FilesCallbacks::remove;
    callbacks.close = detail::FilesCallbacks::close;
    auto *payload = new std::shared_ptr<Files>(std::move(files));
    llvs_transport *raw = nullptr;
    detail::run([&](llvs_error **error) {
        return llvs_transport_create_on_files(detail::bytes(name), &callbacks, payload, detail::delete_payload<std::shared_ptr<Files>>,
                                              &raw, error);
    });
    return HostTransport(raw);
}

} // namespace llvs

#endif
