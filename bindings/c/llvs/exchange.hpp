// Exchanging versions with places.
// Part of llvs.hpp.
#ifndef LLVS_EXCHANGE_HPP
#define LLVS_EXCHANGE_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store.hpp"

namespace llvs {

/// How a call moved the current version of a coordinator; see llvs_move.
struct Move {
    bool moved = false;
    VersionID from, to;
};

/// The result of one exchange of a coordinator.
struct Exchanged;

/// The result of an exchange; see llvs_exchange_result.
struct ExchangeResult {
    using Problem = llvs::Problem;
    std::vector<VersionID> retrieved, sent, repaired;
    std::vector<Problem> problems;
    /// Of a coordinator: how it moved the current version, and the result of each exchange that ran.
    Move move;
    std::vector<Exchanged> exchanges;

    /// Nothing was done.
    ExchangeResult();
    /// Takes ownership of a result.
    explicit ExchangeResult(llvs_exchange_result *raw);
    /// A copy of the library's struct.
    explicit ExchangeResult(const llvs_exchange_result &result);
};

/// The result of one of the exchanges of a coordinator.
struct Exchanged {
    /// The URL or name with which it was attached.
    std::string place;
    /// The result of the exchange, also if it failed.
    ExchangeResult result;
    /// The error that ended it; LLVS_OK if there was none.
    llvs_status code;
    std::string message;
};

// Defined here, since a vector of them needs the complete type.
inline ExchangeResult::ExchangeResult() = default;

inline ExchangeResult::ExchangeResult(llvs_exchange_result *raw) : ExchangeResult(*raw) {
    detail::Handle<llvs_exchange_result, llvs_exchange_result_free> handle(raw);
}

inline ExchangeResult::ExchangeResult(const llvs_exchange_result &raw) {
    for (std::size_t i = 0; i < raw.retrieved_count; i++) retrieved.push_back(detail::string(raw.retrieved[i]));
    for (std::size_t i = 0; i < raw.sent_count; i++) sent.push_back(detail::string(raw.sent[i]));
    for (std::size_t i = 0; i < raw.repaired_count; i++) repaired.push_back(detail::string(raw.repaired[i]));
    problems = detail::problems(raw.problems, raw.problem_count);
    move = {raw.moved != 0, detail::string(raw.from), detail::string(raw.to)};
    for (std::size_t i = 0; i < raw.exchange_count; i++) {
        const llvs_exchanged *one = raw.exchanges[i];
        const char *message = one->error ? llvs_error_message(one->error) : "";
        exchanges.push_back({detail::string(one->place), ExchangeResult(*one->result), llvs_error_code(one->error), message});
    }
}

/// A member: a holder of the keys of an encrypted place.
struct Member {
    llvs_member_kind kind;
    /// For people.
    std::string name;
    /// "age1..."
    std::string recipient;
    /// When it was added, for people.
    std::string added;
};

/// A writer of a place in the packed layout; see llvs_remote_writer.
struct RemoteWriter {
    std::string id;
    std::uint32_t number = 0;
    /// Seconds since 1970; 0 for this device.
    double last_seen = 0;
    bool here = false;
    /// The name that the writer gave itself; empty: none.
    std::string name;
};

/// What this device knows about a place in the packed layout; see llvs_remote.
struct RemoteStatus {
    llvs_layout layout = LLVS_LAYOUT_PACKED;
    /// The number of the newest keys; 0: it is not encrypted.
    std::uint32_t epoch = 0;
    /// Six words, for people to compare.
    std::string fingerprint;
    std::uint64_t packs = 0, bytes = 0;
    /// Seconds since 1970; 0: not yet.
    double listed = 0;
    std::vector<RemoteWriter> writers;

    /// Nothing is known.
    RemoteStatus() = default;
    /// What the library knows.
    explicit RemoteStatus(const llvs_remote &raw)
        : layout(raw.layout), epoch(raw.epoch), fingerprint(detail::string(raw.fingerprint)), packs(raw.packs), bytes(raw.bytes),
          listed(raw.listed) {
        for (std::size_t i = 0; i < raw.writer_count; i++) {
            const llvs_remote_writer &one = *raw.writers[i];
            writers.push_back({detail::string(one.id), one.number, one.last_seen, one.here != 0, detail::string(one.name)});
        }
    }
};

/// The keys of an encrypted place; see `recipients` and `passphrase` of llvs_exchange_options. They are read when an exchange is opened.
struct PlaceKeys {
    std::string passphrase;
    /// "AGE-SECRET-KEY-1...".
    std::vector<std::string> identities;
    /// The recipients of further members ("age1..."), for a place that this exchange creates.
    std::vector<std::string> recipients;
};

namespace detail {
/// Calls the function with options that borrow the keys.
template <class Call> void with_keys(llvs_exchange_options options, const PlaceKeys &keys, Call call) {
    std::vector<llvs_bytes> recipients, identities;
    for (const std::string &one : keys.recipients) recipients.push_back(bytes(one));
    for (const std::string &one : keys.identities) identities.push_back(bytes(one));
    options.recipients = recipients.data();
    options.recipient_count = recipients.size();
    options.identities = identities.data();
    options.identity_count = identities.size();
    options.passphrase = bytes(keys.passphrase);
    call(options);
}
} // namespace detail

/// Moves versions between a store and a place that other devices reach.
class Exchange {
public:
    static llvs_exchange_options options() { return LLVS_EXCHANGE_OPTIONS_INIT; }

    Exchange(const Store &store, std::string_view url, const llvs_exchange_options &options = Exchange::options()) {
        llvs_exchange *raw = nullptr;
        detail::run([&](llvs_error **error) { return llvs_exchange_open(store.raw(), detail::bytes(url), &options, &raw, error); });
        handle_ = decltype(handle_)(raw);
    }
    /// With an encrypted place.
    Exchange(const Store &store, std::string_view url, const PlaceKeys &keys, const llvs_exchange_options &options = Exchange::options()) {
        detail::with_keys(options, keys, [&](const llvs_exchange_options &all) { *this = Exchange(store, url, all); });
    }
    /// Through a transport of the host.
    Exchange(const Store &store, const HostTransport &transport, llvs_exchange_options options = Exchange::options()) {
        llvs_exchange *raw = nullptr;
        options.host_transport = transport.raw();
        detail::run([&](llvs_error **error) { return llvs_exchange_open(store.raw(), LLVS_NONE, &options, &raw, error); });
        handle_ = decltype(handle_)(raw);
    }
    /// Returns the URL that it was opened with; empty with a transport of the host.
    std::string url() const { return detail::string(llvs_exchange_url(raw())); }
    /// Registers a callback for new versions at the other side, on a thread of the library. Throws Error (UNSUPPORTED) if the transport
    /// cannot report changes.
    Observer observe(std::function<void()> callback) {
        return Observer::make(std::move(callback),
                              [&](void *payload, llvs_free_fn payload_free, llvs_observer **observer, llvs_error **error) {
                                  return llvs_exchange_observe(raw(), detail::notify, payload, payload_free, observer, error);
                              });
    }
    ExchangeResult retrieve(const llvs_control *control = nullptr) {
        llvs_exchange_result *result = nullptr;
        detail::run([&](llvs_error **error) { return llvs_exchange_retrieve(raw(), control, &result, error); });
        return ExchangeResult(result);
    }
    /// Retrieves, and also checks the files of versions that the store has: damaged files are problems, and the next `send` writes them
    /// again. Versions that are damaged in the store are repaired.
    ExchangeResult verify(const llvs_control *control = nullptr) {
        llvs_exchange_result *result = nullptr;
        detail::run([&](llvs_error **error) { return llvs_exchange_verify(raw(), control, &result, error); });
        return ExchangeResult(result);
    }
    ExchangeResult send(const llvs_control *control = nullptr) {
        llvs_exchange_result *result = nullptr;
        detail::run([&](llvs_error **error) { return llvs_exchange_send(raw(), control, &result, error); });
        return ExchangeResult(result);
    }
    /// Writes a snapshot of the whole store to the place of the exchange, replacing an older one of this library.
    Snapshot put_snapshot(const llvs_control *control = nullptr) {
        return *detail::snapshot([&](auto out, auto error) { return llvs_exchange_put_snapshot(raw(), control, out, error); });
    }
    /// Restores the snapshot at the place into the store, which must be empty or hold one version, or a part of this snapshot. `problems`
    /// has the skipped versions: those that do not match their content ids, and their descendants.
    Snapshot restore_snapshot(const llvs_control *control = nullptr) {
        return *detail::snapshot([&](auto out, auto error) { return llvs_exchange_restore_snapshot(raw(), control, out, error); });
    }
    /// Returns the manifest of the snapshot at the place, of any format; nothing if there is none.
    std::optional<Snapshot> snapshot() const {
        return detail::snapshot([&](auto out, auto error) { return llvs_exchange_snapshot(raw(), out, error); });
    }
    /// Lists the members of the encrypted place.
    std::vector<Member> members(const llvs_control *control = nullptr) {
        llvs_member_list *raw_list = nullptr;
        detail::run([&](llvs_error **error) { return llvs_exchange_members(raw(), control, &raw_list, error); });
        detail::Handle<llvs_member_list, llvs_member_list_free> list(raw_list);
        std::vector<Member> all;
        for (std::size_t i = 0; i < list.get()->count; i++) {
            const llvs_member *one = list.get()->items[i];
            all.push_back({one->kind, detail::string(one->name), detail::string(one->recipient), detail::string(one->added)});
        }
        return all;
    }
    /// Adds a member of the place; see llvs_exchange_add_member.
    void add_member(std::string_view recipient, std::string_view name = {}, llvs_member_kind kind = LLVS_MEMBER_DEVICE,
                    const llvs_control *control = nullptr) {
        detail::run([&](llvs_error **error) {
            return llvs_exchange_add_member(raw(), detail::bytes(recipient), detail::bytes(name), kind, control, error);
        });
    }
    /// Removes a member, who does not get the keys of later contents; see llvs_exchange_remove_member.
    void remove_member(std::string_view recipient, const llvs_control *control = nullptr) {
        detail::run([&](llvs_error **error) { return llvs_exchange_remove_member(raw(), detail::bytes(recipient), control, error); });
    }
    /// Sets another passphrase; see llvs_exchange_change_passphrase.
    void change_passphrase(std::string_view passphrase, bool leaked = false, const llvs_control *control = nullptr) {
        detail::run([&](llvs_error **error) {
            return llvs_exchange_change_passphrase(raw(), detail::bytes(passphrase), leaked, control, error);
        });
    }
    /// Returns the pairing of the encrypted place, with which its members make direct connections; a secret. See llvs_exchange_pairing.
    std::string pairing(bool read_anew = true, const llvs_control *control = nullptr) {
        return detail::taken([&](llvs_buffer *pairing, llvs_error **error) {
            return llvs_exchange_pairing(raw(), read_anew, control, pairing, error);
        });
    }
    /// Joins competing keys; see llvs_exchange_join_keys.
    void join_keys(const llvs_control *control = nullptr) {
        detail::run([&](llvs_error **error) { return llvs_exchange_join_keys(raw(), control, error); });
    }
    /// Sends the whole contents of the place again with the newest keys, and returns how many packs with older keys remain; see
    /// llvs_exchange_rekey.
    std::uint64_t rekey(bool renew = false, const llvs_control *control = nullptr) {
        std::uint64_t left = 0;
        detail::run([&](llvs_error **error) { return llvs_exchange_rekey(raw(), renew, control, &left, error); });
        return left;
    }
    /// Returns the state that it needs in a later process; see llvs_exchange_restoration_state.
    std::string restoration_state() const {
        return detail::taken([&](llvs_buffer *state, llvs_error **error) { return llvs_exchange_restoration_state(raw(), state, error); });
    }
    /// Restores that state; or "new": joins the place that is there now, permanently. See llvs_exchange_set_restoration_state.
    void set_restoration_state(std::string_view state) {
        detail::run([&](llvs_error **error) { return llvs_exchange_set_restoration_state(raw(), detail::bytes(state), error); });
    }
    /// Retires this device as a writer of a place in the packed layout; see llvs_exchange_retire.
    ExchangeResult retire(const llvs_control *control = nullptr) {
        llvs_exchange_result *result = nullptr;
        detail::run([&](llvs_error **error) { return llvs_exchange_retire(raw(), control, &result, error); });
        return ExchangeResult(result);
    }
    /// Lets all devices write values to a place in the packed layout as differences; see llvs_exchange_enable_differences.
    ExchangeResult enable_differences(const llvs_control *control = nullptr) {
        llvs_exchange_result *result = nullptr;
        detail::run([&](llvs_error **error) { return llvs_exchange_enable_differences(raw(), control, &result, error); });
        return ExchangeResult(result);
    }
    /// Announces to the other devices that the place has moved; see llvs_exchange_announce_move.
    ExchangeResult announce_move(std::string_view address, const llvs_control *control = nullptr) {
        llvs_exchange_result *result = nullptr;
        detail::run([&](llvs_error **error) {
            return llvs_exchange_announce_move(raw(), detail::bytes(address), control, &result, error);
        });
        return ExchangeResult(result);
    }
    /// Returns what this device knows about a place in the packed layout; see llvs_exchange_remote. Nothing if there was no exchange, or
    /// the place has no packs.
    std::optional<RemoteStatus> remote_status() const {
        llvs_remote *remote = nullptr;
        detail::run([&](llvs_error **error) { return llvs_exchange_remote(raw(), &remote, error); });
        if (!remote) return std::nullopt;
        detail::Handle<llvs_remote, llvs_remote_free> handle(remote);
        return RemoteStatus(*remote);
    }
    void close() { detail::run([&](llvs_error **error) { return llvs_exchange_close(raw(), error); }); }
    /// The handle, for calls of the C interface; this object owns it.
    llvs_exchange *raw() const { return handle_.get(); }

private:
    detail::Handle<llvs_exchange, llvs_exchange_free> handle_;
};

/// The keys of an encrypted stream of packs: see llvs_pack_options. They are read during the call.
struct PackOptions {
    /// For writing: the recipients that can open it, "age1...".
    std::vector<std::string> recipients;
    /// For reading: identities ("AGE-SECRET-KEY-1..."), one of which must open the stream.
    std::vector<std::string> identities;
    /// Instead of recipients and identities, for both directions.
    std::string passphrase;
};

namespace detail {
/// Calls the function with the options of the C interface.
template <class Call> void with_options(const PackOptions &options, Call call) {
    std::vector<llvs_bytes> recipients, identities;
    for (const std::string &one : options.recipients) recipients.push_back(bytes(one));
    for (const std::string &one : options.identities) identities.push_back(bytes(one));
    llvs_pack_options raw = LLVS_PACK_OPTIONS_INIT;
    raw.recipients = recipients.data();
    raw.recipient_count = recipients.size();
    raw.identities = identities.data();
    raw.identity_count = identities.size();
    raw.passphrase = bytes(options.passphrase);
    run([&](llvs_error **error) { return call(&raw, error); });
}
} // namespace detail

/// Writes the versions that another store lacks, as bytes for `read_pack` of that store; it has the versions `have` and all their
/// ancestors. Calls `write` with the bytes from front to back, in pieces. See llvs_store_write_pack.
inline ExchangeResult write_pack(const Store &store, const std::vector<VersionID> &have, std::function<void(std::string_view piece)> write,
                                 const llvs_control *control = nullptr, const PackOptions &options = {}) {
    std::vector<llvs_bytes> known;
    for (const VersionID &id : have) known.push_back(detail::bytes(id));
    llvs_exchange_result *result = nullptr;
    detail::with_options(options, [&](const llvs_pack_options *raw, llvs_error **error) {
        return llvs_store_write_pack(store.raw(), known.data(), known.size(), raw, Outgoing::call, &write, control, &result, error);
    });
    return ExchangeResult(result);
}

/// Adds the versions that `write_pack` of another store wrote. `read` fills a buffer from its start with the next bytes, and returns how
/// many; 0: there are no more. See llvs_store_read_pack.
inline ExchangeResult read_pack(const Store &store, std::function<std::size_t(std::uint8_t *buffer, std::size_t capacity)> read,
                                const llvs_control *control = nullptr, const PackOptions &options = {}) {
    ValueSource source{std::string(), std::move(read)};
    llvs_exchange_result *result = nullptr;
    detail::with_options(options, [&](const llvs_pack_options *raw, llvs_error **error) {
        return llvs_store_read_pack(store.raw(), raw, detail::Sources::read, &source, control, &result, error);
    });
    return ExchangeResult(result);
}

} // namespace llvs

#endif
