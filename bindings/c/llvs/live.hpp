// Direct connections between stores.
// Part of llvs.hpp.
#ifndef LLVS_LIVE_HPP
#define LLVS_LIVE_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control.hpp"
#include "exchange.hpp"
#include "reports.hpp"
#include "store.hpp"

namespace llvs {

/// Makes a random pairing, the secret that all devices of a store share; give it to the others in secret. See llvs_pairing_create.
inline std::string make_pairing() {
    return detail::taken([&](llvs_buffer *made, llvs_error **error) { return llvs_pairing_create(made, error); });
}
/// Makes the random code of an invitation, with which a device gets the pairing; see llvs_invitation_create.
inline std::string make_invitation() {
    return detail::taken([&](llvs_buffer *code, llvs_error **error) { return llvs_invitation_create(code, error); });
}
/// Checks by its first LLVS_PEER_BEGINNING bytes whether a connection was made with a pairing, or the code of an invitation; see
/// llvs_pairing_matches. An empty pairing: checks whether people compare digits.
inline bool pairing_matches(std::string_view pairing, std::string_view beginning) {
    llvs_bool matches = 0;
    detail::run([&](llvs_error **error) {
        return llvs_pairing_matches(detail::bytes(pairing), detail::bytes(beginning), &matches, error);
    });
    return matches != 0;
}
/// Returns the public half of a device key, whose secret half is LLVS_DEVICE_KEY_SIZE random bytes; see llvs_device_key.
inline std::string device_key(std::string_view identity) {
    return detail::taken([&](llvs_buffer *key, llvs_error **error) { return llvs_device_key(detail::bytes(identity), key, error); });
}

/// The state of a direct connection; see llvs_peer_state.
struct PeerState {
    llvs_peer_phase phase = LLVS_PEER_CONNECTING;
    /// The name that the other side gave itself, and the public half of its device key; empty before they are known.
    std::string device, key;
    /// Versions that were sent, and versions that were received and added.
    std::uint64_t sent = 0, received = 0;
    /// Versions that could not be sent or received since the last call for the state.
    std::vector<Problem> problems;
    /// The pairing that was received through an invitation, or by comparing digits; empty before it has arrived.
    std::string pairing;
    /// Six digits for people to compare; empty before they are known.
    std::string digits;
};

/// How to open an end of a direct connection; see llvs_peer_options.
struct PeerOptions {
    /// Whether this side made the connection.
    bool initiator = false;
    /// The result of `make_pairing`, the same on both sides; empty: this side gets it through the invitation.
    std::string pairing;
    /// The secret half of this device's key; empty: a new key for this connection only.
    std::string identity;
    /// The name of this device, which is sent to the other side.
    std::string device;
    /// Public halves of the device keys that are accepted; none: all devices that have the pairing.
    std::vector<std::string> accepted;
    /// The code of an invitation, used for this connection; empty: the pairing is used.
    std::string invitation;
    /// Whether the connection uses neither a pairing nor an invitation: people compare the digits of the state, and confirm with `confirm`.
    bool compares_digits = false;
    /// Called before that many more bytes are stored; if it throws, the connection ends. It must not call the peer or its store.
    std::function<void(std::uint64_t)> quota;
    /// Instead of `pairing`: an exchange with an encrypted place, from whose keys the pairing is derived; used when the peer is made.
    const Exchange *exchange = nullptr;
    /// The address of the other side, for a program that carries the bytes and accepts all devices with the pairing.
    std::string place;
    /// If the program carries the bytes within TLS: the channel binding of that TLS connection.
    std::string outer;
};

namespace detail {

/// The options in the form of the C interface; valid as long as the options from which they are made.
class PeerOptionsOfC {
public:
    explicit PeerOptionsOfC(const PeerOptions &options) {
        for (const std::string &key : options.accepted) keys_.push_back(bytes(key));
        raw.initiator = options.initiator;
        if (!options.pairing.empty()) raw.pairing = bytes(options.pairing);
        if (!options.invitation.empty()) raw.invitation = bytes(options.invitation);
        if (!options.identity.empty()) raw.identity = bytes(options.identity);
        raw.device = bytes(options.device);
        if (!keys_.empty()) raw.accepted = keys_.data();
        raw.accepted_count = keys_.size();
        raw.compares_digits = options.compares_digits;
        if (options.exchange) raw.exchange = options.exchange->raw();
        if (!options.place.empty()) raw.place = bytes(options.place);
        if (!options.outer.empty()) raw.outer = bytes(options.outer);
        if (!options.quota) return;
        raw.quota = ask_for_room;
        raw.quota_payload = new Quota(options.quota);
        raw.quota_free = delete_payload<Quota>;
    }
    PeerOptionsOfC(const PeerOptionsOfC &) = delete;
    PeerOptionsOfC &operator=(const PeerOptionsOfC &) = delete;

    llvs_peer_options raw = LLVS_PEER_OPTIONS_INIT;

private:
    using Quota = std::function<void(std::uint64_t)>;
    static llvs_status ask_for_room(void *payload, std::uint64_t bytes, llvs_error **error) {
        return guard(error, [&]() -> llvs_status {
            (*static_cast<Quota *>(payload))(bytes);
            return LLVS_OK;
        });
    }
    std::vector<llvs_bytes> keys_;
};

} // namespace detail

/// One end of a direct connection; the program carries the bytes; see llvs_peer. Safe from all threads.
///
///     peer.receive(received);
///     for (std::string data = peer.send(); !data.empty(); data = peer.send()) write(data);
class Peer {
public:
    /// Opens the peer, which keeps the store open.
    Peer(const Store &store, const PeerOptions &options) {
        detail::PeerOptionsOfC given(options);
        llvs_peer *made = nullptr;
        detail::run([&](llvs_error **error) { return llvs_peer_open(store.raw(), &given.raw, &made, error); });
        handle_ = decltype(handle_)(made);
    }
    /// Connects a store to the one that a `Listener` offers at an address; the library carries the bytes. See llvs_peer_connect.
    static Peer connect(const Store &store, std::string_view address, const PeerOptions &options, double seconds = 10) {
        detail::PeerOptionsOfC given(options);
        llvs_peer *made = nullptr;
        detail::run([&](llvs_error **error) {
            return llvs_peer_connect(store.raw(), &given.raw, detail::bytes(address), seconds, &made, error);
        });
        return Peer(made);
    }
    /// Lets the library carry the bytes over a connected socket, which belongs to the library from then on. See llvs_peer_carry.
    void carry(std::int32_t descriptor) const {
        detail::run([&](llvs_error **error) { return llvs_peer_carry(raw(), descriptor, error); });
    }
    /// Waits until both stores are in sync, and returns whether they are; for peers that the library carries. See llvs_peer_wait.
    bool wait(double seconds) const {
        llvs_bool in_step = 0;
        detail::run([&](llvs_error **error) { return llvs_peer_wait(raw(), seconds, &in_step, error); });
        return in_step != 0;
    }

    /// Passes received bytes to the peer, in pieces of any size. If it throws, the connection has ended; the bytes that `send` returns then
    /// report the error to the other side.
    void receive(std::string_view data) const {
        detail::run([&](llvs_error **error) { return llvs_peer_receive(raw(), detail::bytes(data), error); });
    }
    /// Reports to the peer that the connection delivers no more bytes.
    void receive_end() const {
        detail::run([&](llvs_error **error) { return llvs_peer_receive_end(raw(), error); });
    }
    /// Returns the next bytes to send, at most `limit`; empty if there are none.
    std::string send(std::size_t limit = 65536) const {
        std::string data(limit, '\0');
        std::size_t size = 0;
        detail::run([&](llvs_error **error) { return llvs_peer_send(raw(), &data[0], data.size(), &size, error); });
        data.resize(size);
        return data;
    }
    /// Checks the store for new versions to send.
    void store_changed() const {
        detail::run([&](llvs_error **error) { return llvs_peer_store_changed(raw(), error); });
    }
    /// Passes the time to the peer, in seconds of a monotonic clock; call it every few seconds.
    void tick(double seconds) const {
        detail::run([&](llvs_error **error) { return llvs_peer_tick(raw(), seconds, error); });
    }
    /// Confirms that the person on this side sees the same digits on both; see llvs_peer_confirm.
    void confirm() const {
        detail::run([&](llvs_error **error) { return llvs_peer_confirm(raw(), error); });
    }
    /// Sets whether the program is in the background; see llvs_peer_set_background.
    void set_background(bool is_in_background) const {
        detail::run([&](llvs_error **error) { return llvs_peer_set_background(raw(), is_in_background, error); });
    }
    /// Says goodbye after everything has been sent and stored.
    void close() const {
        detail::run([&](llvs_error **error) { return llvs_peer_close(raw(), error); });
    }
    /// Returns the state.
    PeerState state() const {
        llvs_peer_state *found = nullptr;
        detail::run([&](llvs_error **error) { return llvs_peer_get_state(raw(), &found, error); });
        detail::Handle<llvs_peer_state, llvs_peer_state_free> owned(found);
        return { found->phase, detail::string(found->device), detail::string(found->key), found->sent, found->received,
                 detail::problems(found->problems, found->problem_count), detail::string(found->pairing), detail::string(found->digits) };
    }
    /// The handle, for calls of the C interface; this object owns it.
    llvs_peer *raw() const { return handle_.get(); }

private:
    friend class Listener;
    explicit Peer(llvs_peer *made) : handle_(made) {}

    detail::Handle<llvs_peer, llvs_peer_free> handle_;
};

/// Offers stores to direct connections; see llvs_listener. Safe from all threads. Its destructor says goodbye on all connections.
class Listener {
public:
    /// Listens at "host:port", "[host]:port" or "unix:/path". The fields of the options about the pairing stay empty.
    explicit Listener(std::string_view address, const PeerOptions &options = {}) {
        detail::PeerOptionsOfC given(options);
        llvs_listener *made = nullptr;
        detail::run([&](llvs_error **error) { return llvs_listener_open(detail::bytes(address), &given.raw, &made, error); });
        handle_ = decltype(handle_)(made);
    }
    /// Offers a store, also in addition to others, to the devices that have its pairing.
    void offer(const Store &store, std::string_view pairing) const {
        detail::run([&](llvs_error **error) { return llvs_listener_offer(raw(), store.raw(), detail::bytes(pairing), error); });
    }
    /// Offers a store to the members of an encrypted place; see llvs_listener_offer_members.
    void offer(const Store &store, const Exchange &members) const {
        detail::run([&](llvs_error **error) { return llvs_listener_offer_members(raw(), store.raw(), members.raw(), error); });
    }
    /// Returns the address at which it listens, with the port that the system chose.
    std::string address() const {
        return detail::taken([&](llvs_buffer *address, llvs_error **error) { return llvs_listener_address(raw(), address, error); });
    }
    /// Makes the code of an invitation to a store that is offered; see llvs_listener_invite.
    std::string invite(std::string_view pairing, double seconds = 600) const {
        return detail::taken([&](llvs_buffer *code, llvs_error **error) {
            return llvs_listener_invite(raw(), detail::bytes(pairing), seconds, code, error);
        });
    }
    /// Admits one device after people have compared digits; see llvs_listener_compare.
    void compare(std::string_view pairing, double seconds = 600) const {
        detail::run([&](llvs_error **error) { return llvs_listener_compare(raw(), detail::bytes(pairing), seconds, error); });
    }
    /// Returns the next connection that was not returned yet; nothing if there is none within the given seconds.
    std::optional<Peer> accept(double seconds) const {
        llvs_peer *made = nullptr;
        detail::run([&](llvs_error **error) { return llvs_listener_accept(raw(), seconds, &made, error); });
        return made ? std::optional<Peer>(Peer(made)) : std::nullopt;
    }
    /// The handle, for calls of the C interface; this object owns it.
    llvs_listener *raw() const { return handle_.get(); }

private:
    detail::Handle<llvs_listener, llvs_listener_free> handle_;
};

/// An event about a device on the local network; see llvs_nearby_fn.
struct NearbyEvent {
    llvs_nearby_event event = LLVS_NEARBY_FOUND;
    std::string name;
    /// Numeric; empty if this device got another name.
    std::string address;
    std::uint16_t port = 0;
};

namespace detail {

inline void nearby(void *payload, llvs_nearby_event event, const llvs_bytes *name, const llvs_bytes *address, std::uint32_t port) {
    auto *registered = static_cast<Observer::Registered<std::function<void(const NearbyEvent &)>> *>(payload);
    registered->state->guard(
        [&] { registered->callback(NearbyEvent{event, string(*name), string(*address), static_cast<std::uint16_t>(port)}); });
}

} // namespace detail

/// Finds devices on the local network that offer stores, and announces this one if it listens at a port; see llvs_nearby_observe.
inline Observer observe_nearby(std::function<void(const NearbyEvent &)> callback, std::uint16_t port = 0, std::string_view name = {}) {
    return Observer::make(
        std::move(callback), [&](void *payload, llvs_free_fn payload_free, llvs_observer **observer, llvs_error **error) {
            return llvs_nearby_observe(detail::bytes(name), port, detail::nearby, payload, payload_free, observer, error);
        });
}

} // namespace llvs

#endif
