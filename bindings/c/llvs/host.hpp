// Storages and transports of the host.
// Part of llvs.hpp.
#ifndef LLVS_HOST_HPP
#define LLVS_HOST_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "values.hpp"

namespace llvs {

namespace detail {

inline std::vector<std::string_view> views(const llvs_bytes *items, std::size_t count) {
    std::vector<std::string_view> found;
    found.reserve(count);
    for (std::size_t i = 0; i < count; i++) found.push_back(view(items[i]));
    return found;
}
/// The object behind a payload that is a `std::shared_ptr<T>`.
template <typename T>
T &target(void *payload) { return **static_cast<std::shared_ptr<T> *>(payload); }

} // namespace detail

/// Receives the results of a storage or transport; valid during its call only.
class Reply {
public:
    /// For a callback: wraps its argument.
    explicit Reply(llvs_reply *raw) : raw_(raw) {}
    /// Adds an item to a list.
    void add(std::string_view item) {
        detail::run([&](llvs_error **error) { return llvs_reply_add(raw_, detail::bytes(item), error); });
    }
    /// Sets the reply to question number `index`; a question without a reply counts as absent.
    void set(std::size_t index, std::string_view data) {
        detail::run([&](llvs_error **error) { return llvs_reply_set(raw_, index, detail::bytes(data), error); });
    }
    /// Replies with a file that is read in pieces later; see llvs_reply_set_source. `size`: its bytes, 0: unknown.
    void set_source(std::size_t index, ValueSource::Read read, std::uint64_t size = 0) {
        auto *payload = new ValueSource{{}, std::move(read), size};
        detail::run([&](llvs_error **error) {
            return llvs_reply_set_source(raw_, index, size, detail::Sources::read, payload, detail::delete_payload<ValueSource>, error);
        });
    }
    /// Adds a file of a directory, or a directory, by its last component; see llvs_reply_file.
    void file(std::string_view name, std::uint64_t size, bool is_directory = false) {
        detail::run([&](llvs_error **error) { return llvs_reply_file(raw_, detail::bytes(name), size, is_directory ? 1 : 0, error); });
    }
    /// Reports a record to a scan: its place, and its bytes or at least the first 65536 of `size`.
    void record(std::uint64_t place, std::string_view prefix, std::uint64_t size) {
        detail::run([&](llvs_error **error) { return llvs_reply_record(raw_, place, size, detail::bytes(prefix), error); });
    }
    /// Adds a record to the reply; see llvs_reply_record.
    void record(std::uint64_t place, std::string_view whole) { record(place, whole, whole.size()); }
    /// Returns whether the call behind this one was cancelled: then throw Error(LLVS_ERROR_CANCELLED, ...) soon.
    bool cancelled() const { return llvs_reply_is_cancelled(raw_) != 0; }

private:
    llvs_reply *raw_;
};

/// Stores the records of a store in any way that the host chooses; see llvs_storage_callbacks. If a method throws, so does the call that
/// runs it; an Error with a code that the table there names keeps its meaning for the store.
class Storage {
public:
    virtual ~Storage() = default;

    /// Stores the records, all or none, also if there is a crash, and returns a place for each. The views are valid during the call only.
    virtual std::vector<std::uint64_t> append(const std::vector<std::string_view> &records) = 0;
    /// Reports (Reply::record) the records after the mark, by whatever process they were appended, and returns the new mark. It is 0 the
    /// first time.
    virtual std::uint64_t scan(std::uint64_t mark, Reply &reply) = 0;
    /// Copies `size` bytes of a record from `offset` on; throws Error(LLVS_ERROR_DAMAGED, ...) if it is shorter.
    virtual void read(std::uint64_t place, std::uint64_t offset, std::uint8_t *buffer, std::size_t size) = 0;
    /// Makes appended records safe from a power cut.
    virtual void sync() {}
    /// Called when the store has finished with the storage, which may be opened again.
    virtual void close() {}

    /// Whether the three functions below are implemented; else caches last as long as the storage is open.
    virtual bool has_caches() const { return false; }
    /// Returns the cache of that name; nothing if there is none.
    virtual std::optional<std::string> cache_get(std::string_view) { return std::nullopt; }
    /// Stores a cache, replacing one of that name.
    virtual void cache_put(std::string_view, std::string_view) {}
    /// Deletes the cache of that name, if there is one.
    virtual void cache_delete(std::string_view) {}
};

/// A Storage in the library's form: for llvs_store_options.host_storage, or `Store::on`. A store that uses it keeps it alive.
class HostStorage {
public:
    explicit HostStorage(std::shared_ptr<Storage> storage, std::string_view name = {}) {
        if (!storage) throw std::invalid_argument("a host storage needs a Storage");
        llvs_storage_callbacks callbacks = LLVS_STORAGE_CALLBACKS_INIT;
        callbacks.append = append;
        callbacks.scan = scan;
        callbacks.read = read;
        callbacks.sync = sync;
        callbacks.close = close;
        if (storage->has_caches()) {
            callbacks.cache_get = cache_get;
            callbacks.cache_put = cache_put;
            callbacks.cache_delete = cache_delete;
        }
        auto *payload = new std::shared_ptr<Storage>(std::move(storage));
        llvs_storage *raw = nullptr;
        detail::run([&](llvs_error **error) {
            return llvs_storage_create(detail::bytes(name), &callbacks, payload, detail::delete_payload<std::shared_ptr<Storage>>, &raw,
                                       error);
        });
        handle_ = decltype(handle_)(raw);
    }
    /// The handle, for calls of the C interface; this object owns it.
    llvs_storage *raw() const { return handle_.get(); }

private:
    static Storage &storage(void *payload) { return detail::target<Storage>(payload); }

    static llvs_status append(void *payload, const llvs_bytes *records, std::size_t count, std::uint64_t *places, llvs_error **error) {
        return detail::guard(error, [&]() -> llvs_status {
            std::vector<std::uint64_t> found = storage(payload).append(detail::views(records, count));
            // The records may be stored, but without their places the store could not find them.
            if (found.size() != count)
                throw Error(LLVS_ERROR_UNKNOWN_OUTCOME, "a storage did not return one place for each record");
            for (std::size_t i = 0; i < count; i++) places[i] = found[i];
            return LLVS_OK;
        });
    }
    static llvs_status scan(void *payload, std::uint64_t *mark, llvs_reply *reply, llvs_error **error) {
        return detail::guard(error, [&]() -> llvs_status {
            Reply answers(reply);
            *mark = storage(payload).scan(*mark, answers);
            return LLVS_OK;
        });
    }
    static llvs_status read(void *payload, std::uint64_t place, std::uint64_t offset, std::uint8_t *buffer, std::size_t size,
                            llvs_error **error) {
        return detail::guard(error, [&]() -> llvs_status { storage(payload).read(place, offset, buffer, size); return LLVS_OK; });
    }
    static llvs_status sync(void *payload, llvs_error **error) {
        return detail::guard(error, [&]() -> llvs_status { storage(payload).sync(); return LLVS_OK; });
    }
    static llvs_status close(void *payload, llvs_error **error) {
        return detail::guard(error, [&]() -> llvs_status { storage(payload).close(); return LLVS_OK; });
    }
    static llvs_status cache_get(void *payload, const llvs_bytes *name, llvs_reply *reply, llvs_error **error) {
        return detail::guard(error, [&]() -> llvs_status {
            if (std::optional<std::string> found = storage(payload).cache_get(view(*name))) Reply(reply).set(0, *found);
            return LLVS_OK;
        });
    }
    static llvs_status cache_put(void *payload, const llvs_bytes *name, const llvs_bytes *data, llvs_error **error) {
        return detail::guard(error, [&]() -> llvs_status { storage(payload).cache_put(view(*name), view(*data)); return LLVS_OK; });
    }
    static llvs_status cache_delete(void *payload, const llvs_bytes *name, llvs_error **error) {
        return detail::guard(error, [&]() -> llvs_status { storage(payload).cache_delete(view(*name)); return LLVS_OK; });
    }

    detail::Handle<llvs_storage, llvs_storage_free> handle_;
};

/// The two files of one version, to publish; the views are valid during the call only.
struct VersionFiles {
    std::string_view name, version, changes;
};

/// A large file to publish, made piece by piece; valid during the call only.
class Outgoing {
public:
    /// For a callback: wraps its argument.
    explicit Outgoing(llvs_outgoing *raw) : raw_(raw) {}
    /// The size in bytes.
    std::uint64_t size() const { return llvs_outgoing_size(raw_); }
    /// Calls the function with each piece, in order. May be called again, with the same bytes from the start.
    void write(std::function<void(std::string_view piece)> body) {
        detail::run([&](llvs_error **error) { return llvs_outgoing_write(raw_, call, &body, error); });
    }

    /// An llvs_write_fn for such a function.
    static llvs_status call(void *payload, const llvs_bytes *piece, llvs_error **error) {
        return detail::guard(error, [&]() -> llvs_status {
            (*static_cast<std::function<void(std::string_view)> *>(payload))(view(*piece));
            return LLVS_OK;
        });
    }

private:
    llvs_outgoing *raw_;
};

/// Moves version files to and from any place of the host; see llvs_transport_callbacks. If a method throws, so does the call that runs it;
/// an Error with a code that the table there names keeps its meaning for the exchange.
class Transport {
public:
    virtual ~Transport() = default;

    /// Adds (Reply::add) the names of all version files on the other side.
    virtual void list(Reply &reply) = 0;
    /// Replies (Reply::set) to each name with its version file.
    virtual void fetch_versions(const std::vector<std::string_view> &names, Reply &reply) = 0;
    /// Replies (Reply::set, for large files Reply::set_source) to each name with its changes file.
    virtual void fetch_changes(const std::vector<std::string_view> &names, Reply &reply) = 0;
    /// Publishes files in order, the changes file of a version before its version file, each whole or not at all; existing ones are
    /// replaced. The reply says whether the call has been cancelled.
    virtual void send(const std::vector<VersionFiles> &files, Reply &reply) = 0;
    /// Called when the exchange has finished with the transport.
    virtual void close() {}

    /// Whether `send_large` is implemented; else `send` also gets changes files of more than 1 MiB, in memory as a whole.
    virtual bool takes_large() const { return false; }
    /// Does the same as `send` for one version whose changes file is large.
    virtual void send_large(std::string_view, std::string_view, Outgoing &, Reply &) {}

    /// Whether `unusable` is implemented.
    virtual bool knows_unusable() const { return false; }
    /// Adds (Reply::add) the names for which one of the two files is known to be missing, empty or cut short.
    virtual void unusable(const std::vector<std::string_view> &, Reply &) {}

    /// Whether the four functions below are implemented; else snapshots throw an Error (UNSUPPORTED).
    virtual bool has_snapshots() const { return false; }
    /// Adds (Reply::add) the names of all snapshot files.
    virtual void snapshot_list(Reply &) {}
    /// Returns the file of that name; nothing if there is none.
    virtual std::optional<std::string> snapshot_read(std::string_view) { return std::nullopt; }
    /// Writes a file, replacing one of that name.
    virtual void snapshot_write(std::string_view, std::string_view) {}
    /// Deletes the file of that name, if there is one.
    virtual void snapshot_delete(std::string_view) {}
};

/// A Transport in the library's form, for an Exchange or a Coordinator, which keep it alive. It serves one exchange at a time.
class HostTransport {
public:
    explicit HostTransport(std::shared_ptr<Transport> transport, std::string_view name = {}) {
        if (!transport) throw std::invalid_argument("a host transport needs a Transport");
        llvs_transport_callbacks callbacks = LLVS_TRANSPORT_CALLBACKS_INIT;
        callbacks.list = list;
        callbacks.fetch_versions = fetch_versions;
        callbacks.fetch_changes = fetch_changes;
        callbacks.send = send;
        callbacks.close = close;
        if (transport->takes_large()) callbacks.send_large = send_large;
        if (transport->knows_unusable()) callbacks.unusable = unusable;
        if (transport->has_snapshots()) {
            callbacks.snapshot_list = snapshot_list;
            callbacks.snapshot_read = snapshot_read;
            callbacks.snapshot_write = snapshot_write;
            callbacks.snapshot_delete = snapshot_delete;
        }
        auto *payload = new std::shared_ptr<Transport>(std::move(transport));
        llvs_transport *raw = nullptr;
        detail::run([&](llvs_error **error) {
            return llvs_transport_create(detail::bytes(name), &callbacks, payload, detail::delete_payload<std::shared_ptr<Transport>>, &raw,
                                         error);
        });
        handle_ = decltype(handle_)(raw);
    }
    /// Takes ownership of a transport that was made in another way: by `on_files`, or the C interface.
    explicit HostTransport(llvs_transport *raw) : handle_(raw) {}
    /// Reports that the other side may have gained versions: calls the observers of the exchange. Any thread.
    void notify() { detail::run([&](llvs_error **error) { return llvs_transport_notify(raw(), error); }); }
    /// The handle, for calls of the C interface; this object owns it.
    llvs_transport *raw() const { return handle_.get(); }
    /// Releases ownership of the handle to the caller, who must free it.
    llvs_transport *release() { return handle_.release(); }

private:
    static Transport &transport(void *payload) { return detail::target<Transport>(payload); }
    template <typename Body>
    static llvs_status answer(llvs_reply *reply, llvs_error **error, Body body) {
        return detail::guard(error, [&]() -> llvs_status {
            Reply answers(reply);
            body(answers);
            return LLVS_OK;
        });
    }

    static llvs_status list(void *payload, llvs_reply *reply, llvs_error **error) {
        return answer(reply, error, [&](Reply &to) { transport(payload).list(to); });
    }
    static llvs_status fetch_versions(void *payload, const llvs_bytes *names, std::size_t count, llvs_reply *reply, llvs_error **error) {
        return answer(reply, error, [&](Reply &to) { transport(payload).fetch_versions(detail::views(names, count), to); });
    }
    static llvs_status fetch_changes(void *payload, const llvs_bytes *names, std::size_t count, llvs_reply *reply, llvs_error **error) {
        return answer(reply, error, [&](Reply &to) { transport(payload).fetch_changes(detail::views(names, count), to); });
    }
    static llvs_status send(void *payload, const llvs_exchange_files *const *files, std::size_t count, llvs_reply *reply,
                            llvs_error **error) {
        return answer(reply, error, [&](Reply &to) {
            std::vector<VersionFiles> found;
            for (std::size_t i = 0; i < count; i++)
                found.push_back({ view(files[i]->name), view(files[i]->version), view(files[i]->changes) });
            transport(payload).send(found, to);
        });
    }
    static llvs_status send_large(
        void *payload, const llvs_bytes *name, const llvs_bytes *version, llvs_outgoing *changes, llvs_reply *reply, llvs_error **error) {
        return answer(reply, error, [&](Reply &to) {
            Outgoing file(changes);
            transport(payload).send_large(view(*name), view(*version), file, to);
        });
    }
    static llvs_status unusable(void *payload, const llvs_bytes *names, std::size_t count, llvs_reply *reply, llvs_error **error) {
        return answer(reply, error, [&](Reply &to) { transport(payload).unusable(detail::views(names, count), to); });
    }
    static llvs_status snapshot_list(void *payload, llvs_reply *reply, llvs_error **error) {
        return answer(reply, error, [&](Reply &to) { transport(payload).snapshot_list(to); });
    }
    static llvs_status snapshot_read(void *payload, const llvs_bytes *name, llvs_reply *reply, llvs_error **error) {
        return answer(reply, error, [&](Reply &to) {
            if (std::optional<std::string> found = transport(payload).snapshot_read(view(*name))) to.set(0, *found);
        });
    }
    static llvs_status snapshot_write(void *payload, const llvs_bytes *name, const llvs_bytes *data, llvs_error **error) {
        return detail::guard(error, [&]() -> llvs_status { transport(payload).snapshot_write(view(*name), view(*data)); return LLVS_OK; });
    }
    static llvs_status snapshot_delete(void *payload, const llvs_bytes *name, llvs_error **error) {
        return detail::guard(error, [&]() -> llvs_status { transport(payload).snapshot_delete(view(*name)); return LLVS_OK; });
    }
    static llvs_status close(void *payload, llvs_error **error) {
        return detail::guard(error, [&]() -> llvs_status { transport(payload).close(); return LLVS_OK; });
    }

    detail::Handle<llvs_transport, llvs_transport_free> handle_;
};

} // namespace llvs

#endif
