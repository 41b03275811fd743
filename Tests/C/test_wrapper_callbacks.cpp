// llvs.hpp: observers, logging, cancellation, options of merges, storages and transports of the host, and exceptions of callbacks.
#include "expect.hpp"

#include "llvs_testing.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace {

/// Records in memory, for every holder of the shared pointer.
class Shelf : public llvs::Storage {
public:
    std::vector<std::string> records;
    std::map<std::string, std::string> caches;
    int throwing = 0, syncs = 0, closes = 0;
    llvs_status failing = LLVS_OK;
    bool miscounting = false;

    std::vector<std::uint64_t> append(const std::vector<std::string_view> &added) override {
        trouble();
        std::vector<std::uint64_t> places;
        for (std::string_view record : added) {
            places.push_back(records.size());
            records.emplace_back(record);
        }
        if (miscounting) places.push_back(0);
        return places;
    }
    std::uint64_t scan(std::uint64_t mark, llvs::Reply &reply) override {
        for (; mark < records.size(); mark++) reply.record(mark, records[mark]);
        return mark;
    }
    void read(std::uint64_t place, std::uint64_t offset, std::uint8_t *buffer, std::size_t size) override {
        trouble();
        const std::string &record = records.at(place);
        if (offset > record.size() || size > record.size() - offset) throw llvs::Error(LLVS_ERROR_DAMAGED, "the record is shorter");
        std::memcpy(buffer, record.data() + offset, size);
    }
    void sync() override { syncs++; }
    void close() override { closes++; }
    bool has_caches() const override { return true; }
    std::optional<std::string> cache_get(std::string_view name) override {
        auto found = caches.find(std::string(name));
        return found == caches.end() ? std::nullopt : std::optional<std::string>(found->second);
    }
    void cache_put(std::string_view name, std::string_view data) override { caches[std::string(name)] = data; }
    void cache_delete(std::string_view name) override { caches.erase(std::string(name)); }

private:
    void trouble() const {
        if (throwing) throw Thrown{throwing};
        if (failing) throw llvs::Error(failing, "the shelf is full");
    }
};

void storages() {
    auto shelf = std::make_shared<Shelf>();
    llvs::VersionID first;
    const std::string large(3000000, 'x');
    {
        llvs::Store store = llvs::Store::on(shelf, llvs::Store::options(), "shelf");
        first = store.make_version("", {llvs::Change::insert("x", "1"), llvs::Change::insert("large", large)});
        EXPECT(store.value("x", first)->data == "1" && store.value("large", first)->data == large);
        shelf->throwing = 7;
        EXPECT(thrown_by([&] { store.make_version(first, {llvs::Change::update("x", "2")}); }) == 7);
        shelf->throwing = 0;
        shelf->failing = LLVS_ERROR_NO_SPACE;
        EXPECT(code_of([&] { store.make_version(first, {llvs::Change::update("x", "2")}); }) == LLVS_ERROR_NO_SPACE);
        try {
            store.make_version(first, {llvs::Change::update("x", "2")});
        } catch (const llvs::Error &error) {
            EXPECT(std::string(error.what()) == "the shelf is full"); // the callback's own message
        }
        shelf->failing = LLVS_OK;
        EXPECT(store.history().size() == 1);
        EXPECT(store.make_version(first, {llvs::Change::update("x", "2")}) != first);
        store.close();
    }
    EXPECT(shelf->closes == 1 && shelf->syncs > 0 && shelf.use_count() == 1);
    llvs::Store again = llvs::Store::on(shelf);
    EXPECT(again.history().size() == 2 && again.value("large", first)->data == large);
    EXPECT(code_of([&] { llvs::Store::on(std::make_shared<Shelf>()).value("x", first); }) == LLVS_ERROR_UNKNOWN_VERSION);
    shelf->miscounting = true;
    EXPECT(code_of([&] { again.make_version(first, {}); }) == LLVS_ERROR_UNKNOWN_OUTCOME);
    bool refused = false;
    try { llvs::HostStorage(nullptr); } catch (const std::invalid_argument &) { refused = true; }
    EXPECT(refused);
}

/// Files in memory.
class Post : public llvs::Transport {
public:
    std::map<std::string, std::string> versions, changes, snapshots;
    int throwing = 0, large = 0, pieces = 0, read = 0;
    llvs_status failing = LLVS_OK;
    std::vector<std::string> unusables;

    void list(llvs::Reply &reply) override {
        if (throwing && throwing != 9) throw Thrown{throwing};
        if (failing) throw llvs::Error(failing, "the post does not come");
        EXPECT(!reply.cancelled());
        for (const auto &file : versions) reply.add(file.first);
    }
    void fetch_versions(const std::vector<std::string_view> &names, llvs::Reply &reply) override {
        for (std::size_t i = 0; i < names.size(); i++)
            if (auto file = versions.find(std::string(names[i])); file != versions.end()) reply.set(i, file->second);
    }
    void fetch_changes(const std::vector<std::string_view> &names, llvs::Reply &reply) override {
        for (std::size_t i = 0; i < names.size(); i++) {
            auto file = changes.find(std::string(names[i]));
            if (file == changes.end()) continue;
            auto given = std::make_shared<std::size_t>(0);
            reply.set_source(i, [this, given, data = file->second](std::uint8_t *buffer, std::size_t capacity) {
                if (throwing == 9) throw Thrown{9};
                read++;
                std::size_t size = std::min(capacity, data.size() - *given);
                data.copy(reinterpret_cast<char *>(buffer), size, *given);
                *given += size;
                return size;
            }, file->second.size());
        }
    }
    void send(const std::vector<llvs::VersionFiles> &files, llvs::Reply &) override {
        for (const llvs::VersionFiles &file : files) {
            changes[std::string(file.name)] = file.changes;
            versions[std::string(file.name)] = file.version;
        }
    }
    bool takes_large() const override { return true; }
    void send_large(std::string_view name, std::string_view version, llvs::Outgoing &file, llvs::Reply &) override {
        std::string data;
        file.write([&](std::string_view piece) {
            if (throwing) throw Thrown{throwing};
            pieces++;
            data += piece;
        });
        EXPECT(data.size() == file.size());
        changes[std::string(name)] = data;
        versions[std::string(name)] = version;
        large++;
    }
    bool knows_unusable() const override { return true; }
    void unusable(const std::vector<std::string_view> &names, llvs::Reply &reply) override {
        for (std::string_view name : names)
            if (std::find(unusables.begin(), unusables.end(), name) != unusables.end()) reply.add(name);
    }
    bool has_snapshots() const override { return true; }
    void snapshot_list(llvs::Reply &reply) override {
        for (const auto &file : snapshots) reply.add(file.first);
    }
    std::optional<std::string> snapshot_read(std::string_view name) override {
        auto found = snapshots.find(std::string(name));
        return found == snapshots.end() ? std::nullopt : std::optional<std::string>(found->second);
    }
    void snapshot_write(std::string_view name, std::string_view data) override { snapshots[std::string(name)] = data; }
    void snapshot_delete(std::string_view name) override { snapshots.erase(std::string(name)); }
};

/// Files in memory, for every holder of the shared pointer.
class Cellar : public llvs::Files {
public:
    std::map<std::string, std::string> all;
    int throwing = 0, closes = 0, ranges = 0;
    llvs_status failing = LLVS_OK;

    void list(std::string_view directory, llvs::Reply &reply) override {
        trouble();
        const std::string prefix = std::string(directory) + "/";
        for (const auto &file : all) {
            if (file.first.compare(0, prefix.size(), prefix) != 0) continue;
            const std::string rest = file.first.substr(prefix.size());
            if (rest.find('/') == std::string::npos) reply.file(rest, file.second.size());
            else reply.file(rest.substr(0, rest.find('/')), 0, true);
        }
    }
    void read(std::string_view name, std::uint64_t offset, std::uint64_t size, llvs::Reply &reply) override {
        trouble();
        auto found = all.find(std::string(name));
        if (found == all.end()) return;
        if (size > 0) {
            ranges++;
            return reply.set(0, std::string_view(found->second).substr(std::min<std::uint64_t>(offset, found->second.size()), size));
        }
        // Larger files are sent in pieces.
        if (found->second.size() < 100000) return reply.set(0, found->second);
        auto at = std::make_shared<std::size_t>(0);
        reply.set_source(0, [data = found->second, at](std::uint8_t *buffer, std::size_t room) {
            const std::size_t count = std::min(room, data.size() - *at);
            std::memcpy(buffer, data.data() + *at, count);
            *at += count;
            return count;
        }, found->second.size());
    }
    bool publish(std::string_view name, llvs::Outgoing &file, bool replaces, llvs::Reply &reply) override {
        trouble();
        std::string data;
        file.write([&](std::string_view piece) { data += piece; });
        EXPECT(data.size() == file.size() && !reply.cancelled());
        if (!replaces && all.count(std::string(name))) return false;
        all[std::string(name)] = data;
        return true;
    }
    void remove(std::string_view name) override { trouble(); all.erase(std::string(name)); }
    void close() override { closes++; }

private:
    void trouble() const {
        if (throwing) throw Thrown{throwing};
        if (failing != LLVS_OK) throw llvs::Error(failing, "the cellar is locked");
    }
};

void files() {
    auto cellar = std::make_shared<Cellar>();
    llvs::Store one = llvs::Store::memory(), two = llvs::Store::memory();
    const std::string large(3000000, 'y');
    llvs::VersionID last = one.make_version("", { llvs::Change::insert("y", large) });
    {
        llvs::Exchange sending(one, llvs::on_files(cellar, "cellar"));
        cellar->throwing = 5;
        EXPECT(thrown_by([&] { sending.send(); }) == 5);
        cellar->throwing = 0;
        cellar->failing = LLVS_ERROR_TRANSPORT;
        EXPECT(code_of([&] { sending.send(); }) == LLVS_ERROR_TRANSPORT);
        cellar->failing = LLVS_OK;
        EXPECT(sending.send().sent.size() == 1);
        llvs::Exchange receiving(two, llvs::on_files(cellar, "cellar"));
        EXPECT(receiving.retrieve().retrieved.size() == 1 && two.value("y", last)->data == large);
    }
    EXPECT(cellar->closes == 2 && cellar->all.size() == 3); // a root, a pack, a part of a large value
    EXPECT(code_of([&] { llvs::on_files(cellar, ""); }) == LLVS_ERROR_INVALID_ARGUMENT);

    // The suite that the library's own places pass too.
    static std::map<std::uint64_t, std::shared_ptr<Cellar>> cellars;
    llvs_transport_subject subject = LLVS_TRANSPORT_SUBJECT_INIT;
    subject.traits = LLVS_TRAIT_EXCLUSIVE;
    subject.make = [](void *, std::uint64_t place, llvs_transport **transport, llvs_error **) -> llvs_status {
        std::shared_ptr<Cellar> &found = cellars[place];
        if (!found) found = std::make_shared<Cellar>();
        *transport = llvs::on_files(found, "cellar " + std::to_string(place)).release();
        return LLVS_OK;
    };
    llvs_check_report *report = nullptr;
    llvs_error *error = nullptr;
    EXPECT(llvs_check_files(&subject, &report, &error) == LLVS_OK);
    for (std::size_t i = 0; report && i < report->check_count; i++)
        if (report->checks[i]->outcome == LLVS_CHECK_FAILED)
            std::fprintf(stderr, "%s: %s\n", report->checks[i]->name.data, report->checks[i]->message.data);
    EXPECT(report && report->failures == 0);
    llvs_check_report_free(report);
}

void transports() {
    auto post = std::make_shared<Post>();
    llvs::HostTransport mine(post, "post"), theirs(post);
    llvs::Store one = llvs::Store::memory(), two = llvs::Store::memory();
    const std::string large(3000000, 'y');
    llvs::VersionID small = one.make_version("", { llvs::Change::insert("x", "1") }),
                    big = one.make_version(small, { llvs::Change::insert("y", large) });
    llvs::Exchange sending(one, mine), receiving(two, theirs);

    post->throwing = 5;
    EXPECT(thrown_by([&] { sending.send(); }) == 5); // from list
    post->throwing = 0;
    post->failing = LLVS_ERROR_TRANSPORT;
    EXPECT(code_of([&] { sending.send(); }) == LLVS_ERROR_TRANSPORT);
    post->failing = LLVS_OK;
    EXPECT(sending.send().sent.size() == 2 && post->large == 1 && post->pieces > 0 && post->versions.size() == 2);
    post->throwing = 9;
    EXPECT(thrown_by([&] { receiving.retrieve(); }) == 9);
    post->throwing = 0;
    EXPECT(receiving.retrieve().retrieved.size() == 2 && post->read > 0 && two.value("y", big)->data == large);

    // Snapshots go through the same transport.
    EXPECT(!sending.snapshot());
    llvs::Snapshot put = sending.put_snapshot();
    EXPECT(put.version_count == 2 && put.latest_version == big && put.chunk_count > 0 && put.total_size > 0 && !post->snapshots.empty());
    EXPECT(receiving.snapshot()->id == put.id && receiving.snapshot()->format == put.format && put.created_at > 1e9);
    llvs::Store empty = llvs::Store::memory();
    llvs::Exchange restoring(empty, llvs::HostTransport(post));
    EXPECT(code_of([&] { restoring.restore_snapshot(llvs::Control([](const llvs_progress &) { return false; })); }) ==
           LLVS_ERROR_CANCELLED);
    llvs::Snapshot restored = restoring.restore_snapshot();
    EXPECT(restored.id == put.id && restored.problems.empty() && empty.value("y", big)->data == large);
    EXPECT(code_of([&] { llvs::Exchange(llvs::Store::memory(), "memory:nothing-there").restore_snapshot(); }) ==
           LLVS_ERROR_SNAPSHOT_MISSING);

    post->changes[small] = "";
    post->unusables = {small};
    EXPECT(llvs::Exchange(one, llvs::HostTransport(post)).send().sent == std::vector<llvs::VersionID>{ small } &&
           !post->changes[small].empty());

    std::atomic<int> heard{0};
    {
        llvs::Observer observer = receiving.observe([&] { heard++; });
        theirs.notify();
        while (!heard) std::this_thread::yield();
        observer.close();
    }
    llvs_store_options memory = llvs::Store::options();
    memory.storage = LLVS_STORAGE_MEMORY;
    llvs_coordinator_options options = llvs::Coordinator::options();
    options.store = &memory;
    llvs::Coordinator coordinator("", options);
    coordinator.attach("post", llvs::HostTransport(post));
    coordinator.attach("memory:wrapper-callbacks");
    EXPECT(coordinator.exchange().retrieved.size() >= 2 && coordinator.value("x")->data == "1");
    receiving.close();
    EXPECT(code_of([&] { receiving.send(); }) == LLVS_ERROR_CLOSED);
}

void arbiters_of_many_threads() {
    llvs::Store store = llvs::Store::memory();
    llvs::VersionID base = store.make_version("", {llvs::Change::insert("x", "0")});
    llvs::VersionID left = store.make_version(base, {llvs::Change::update("x", "L")});
    llvs::VersionID right = store.make_version(base, {llvs::Change::update("x", "R")});
    std::atomic<int> next{0}, wrong{0};
    thread_local int mine = 0;
    llvs::Arbiter thrower([&](const llvs::Merge &) -> std::optional<std::vector<llvs::Change>> { throw Thrown{mine = ++next}; });
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; i++)
        threads.emplace_back([&] {
            for (int turn = 0; turn < 200; turn++)
                if (thrown_by([&] { store.merge(left, right, thrower); }) != mine) wrong++;
        });
    for (std::thread &thread : threads) thread.join();
    EXPECT(next == 1600 && wrong == 0);
}

void observers() {
    llvs_store_options memory = llvs::Store::options();
    memory.storage = LLVS_STORAGE_MEMORY;
    llvs_coordinator_options options = llvs::Coordinator::options();
    options.store = &memory;
    llvs::Coordinator coordinator("", options);
    std::vector<llvs::VersionID> seen;
    llvs::Observer observer = coordinator.observe([&](const llvs::VersionID &version) { seen.push_back(version); });
    llvs::VersionID first = coordinator.save({llvs::Change::insert("x", "1")});
    EXPECT(seen == std::vector<llvs::VersionID>{first});
    llvs::Observer moved = std::move(observer);
    coordinator.save({llvs::Change::update("x", "2")});
    EXPECT(seen.size() == 2);
    moved.close();
    moved.close();
    coordinator.save({llvs::Change::update("x", "3")});
    EXPECT(seen.size() == 2);

    // An exception of an observer does not come out of the save. It comes out of the observer, once.
    llvs::Observer throwing = coordinator.observe([](const llvs::VersionID &) { throw Thrown{3}; });
    EXPECT(!coordinator.save({llvs::Change::update("x", "4")}).empty());
    EXPECT(thrown_by([&] { throwing.check(); }) == 3 && thrown_by([&] { throwing.check(); }) == 0);
    coordinator.save({llvs::Change::update("x", "5")});
    EXPECT(thrown_by([&] { throwing.close(); }) == 3);

    const std::filesystem::path folder = std::filesystem::absolute("wrapper-observed");
    std::filesystem::remove_all(folder);
    coordinator.attach("file://" + folder.string());
    coordinator.exchange();
    std::atomic<int> heard{0};
    llvs::Observer news = coordinator.observe_exchanges([&] { heard++; });
    llvs::Store other = llvs::Store::memory();
    other.make_version("", {llvs::Change::insert("y", "1")});
    llvs::Exchange(other, "file://" + folder.string()).send();
    while (!heard) std::this_thread::yield();
    news.close();
}

void syncing() {
    llvs::Coordinator laptop("wrapper-syncing-laptop", "memory:wrapper-syncing"), phone("wrapper-syncing-phone", "memory:wrapper-syncing");
    llvs_syncer_options seldom = llvs::Syncer::options();
    seldom.after_save = 20;
    seldom.poll = seldom.longest_poll = 1000000;
    std::atomic<int> rounds{0}, moves{0};
    llvs::Syncer syncer(laptop, [&](const llvs_sync_status &status, const llvs_sync_result *round) {
        EXPECT(status.struct_size == sizeof status);
        if (!round) return;
        rounds++;
        if (round->moved) moves++;
    }, seldom);
    phone.save({llvs::Change::insert("x", "from the phone")});
    phone.sync();
    while (!laptop.value("x")) std::this_thread::yield();
    while (!moves) std::this_thread::yield();
    laptop.save({llvs::Change::update("x", "from the laptop")});
    while (syncer.status().sent == 0) std::this_thread::yield();
    EXPECT(rounds >= 1 && syncer.run() && syncer.run(60000));
    llvs::SyncPlace place = syncer.status().places[0];
    EXPECT(place.last_retrieve > 1.7e9 && place.last_send > 1.7e9 && !place.needs_user && !place.remote && place.requests == 0);
    syncer.trigger(LLVS_SYNC_TRIGGER_NEWS);
    syncer.set_conditions(LLVS_SYNC_PAUSE);
    llvs::SyncStatus status = syncer.status();
    while (status.state != LLVS_SYNC_PAUSED) status = syncer.status();
    EXPECT(status.reason == LLVS_SYNC_REASON_PAUSED && status.places.size() == 1 && status.places[0].place == "memory:wrapper-syncing");
    EXPECT(status.places[0].code == LLVS_OK && status.places[0].message.empty() && status.last_success > 1.7e9);
    syncer.close();
    bool refused = false;
    try { syncer.run(); } catch (const llvs::Error &error) { refused = error.code() == LLVS_ERROR_INVALID_ARGUMENT; }
    EXPECT(refused);

    llvs::Syncer throwing(laptop, [](const llvs_sync_status &, const llvs_sync_result *) { throw std::runtime_error("from an event"); });
    throwing.run();
    bool thrown = false;
    try { throwing.close(); } catch (const std::runtime_error &) { thrown = true; }
    EXPECT(thrown);
}

/// Changes a byte of this text in every file under a folder, and removes the older caches.
void spoil(const std::string &folder, const std::string &text) {
    for (const auto &file : std::filesystem::recursive_directory_iterator(folder)) {
        if (!file.is_regular_file()) continue;
        std::ifstream in(file.path(), std::ios::binary);
        std::string data((std::istreambuf_iterator<char>(in)), {});
        std::size_t at = data.find(text);
        if (at == std::string::npos) continue;
        data[at] ^= 1;
        std::ofstream(file.path(), std::ios::binary) << data;
    }
}

void erasing() {
    llvs::Store store = llvs::Store::memory();
    llvs::VersionID id = store.make_version("", {llvs::Change::insert("a", "secret one"), llvs::Change::insert("b", "two")});
    llvs::EraseOptions options;
    options.ids = {"a"};
    options.dry_run = true;
    EXPECT(store.erase(options).values == 1 && store.erasures().empty() && store.value("a", id));
    options.dry_run = false;
    options.why = "a test";
    EXPECT(code_of([&] { store.erase(options, llvs::Control([](const llvs_progress &) { return false; })); }) == LLVS_ERROR_CANCELLED);
    llvs::EraseReport report = store.erase(options);
    EXPECT(report.values == 1 && report.bytes == 10 && report.orders.size() == 1 && report.made.size() == 1 && report.waiting.empty());
    EXPECT(code_of([&] { store.value("a", id); }) == LLVS_ERROR_ERASED && !store.value("a", report.made[0]));
    std::vector<llvs::Erasure> erasures = store.erasures();
    EXPECT(erasures.size() == 1 && erasures[0].id == report.orders[0] && erasures[0].version == report.made[0]);
    EXPECT(erasures[0].why == "a test" && erasures[0].values == 1 && erasures[0].followed);
    options = {};
    options.containing = "tw";
    options.replacement = "2";
    report = store.erase(options);
    EXPECT(report.values == 1 && store.value("b", report.made[0])->data == "2");
    EXPECT(code_of([&] { store.erase({}); }) == LLVS_ERROR_INVALID_ARGUMENT);
    EXPECT(report.places.size() == 1 && report.places[0].reach == LLVS_ERASURE_OUT_OF_REACH && report.places[0].last_seen == 0);
    EXPECT(store.erasures()[1].places[0].reason == LLVS_ERASURE_REASON_BACKUP);
    const std::string seed(32, 's'), other(32, 't');
    std::string keys, last;
    for (const std::string &one : {seed, other}) {
        keys += keys.empty() ? "\"" : ",\"";
        for (unsigned char byte : llvs::Store::steward_key(one)) {
            char digits[3];
            std::snprintf(digits, sizeof digits, "%02x", byte);
            keys += digits;
        }
        keys += '"';
    }
    store.set_forgetting("{\"erase\":{\"keys\":[" + keys + "],\"mode\":\"stewards\",\"need\":2}}");
    options = {};
    options.ids = {"b"};
    options.signer = seed;
    report = store.erase(options);
    EXPECT(store.erasures().back().signatures == 1 && store.erasures().back().needed == 2);
    last = store.sign_erasure(report.orders[0], other);
    EXPECT(store.erasures().back().id == last && store.erasures().back().signatures == 2 && store.erasures().back().followed);
    last = store.change_stewards("{\"erase\":{\"keys\":[" + keys.substr(0, 66) + "],\"mode\":\"stewards\",\"need\":1}}", other);
    EXPECT(store.erasures().back().state == LLVS_ERASURE_UNSIGNED && store.sign_erasure(last, seed) != last);
    EXPECT(store.forgetting().find("\"step\":1") != std::string::npos);
}

void forgetting() {
    llvs::Store store = llvs::Store::memory();
    llvs::VersionID first = store.make_version("", {llvs::Change::insert("a", "one")});
    llvs::VersionID last = store.make_version(first, {llvs::Change::update("a", "two")});
    EXPECT(code_of([&] { store.forget(); }) == LLVS_ERROR_INVALID_ARGUMENT);
    store.set_forgetting("{\"keep\":{\"days\":0,\"count\":2}}");
    EXPECT(store.forgetting() == "{\"erase\":{\"mode\":\"nobody\"},\"keep\":{\"count\":2,\"days\":0}}");
    llvs::ForgetReport report = store.forget();
    EXPECT(report.values == 0 && report.rows.size() == 8 && report.rows[5].rule == LLVS_FORGET_COUNT && report.rows[5].bytes == 3);
    llvs::ForgetOptions options;
    options.dry_run = true;
    options.policy = "{\"keep\":{\"days\":0}}";
    report = store.forget(options);
    EXPECT(report.values == 1 && report.versions == 1 && report.bytes == 3 && report.rewritten == 0 && store.value("a", first));
    options.dry_run = false;
    EXPECT(code_of([&] { store.forget(options); }) == LLVS_ERROR_INVALID_ARGUMENT);
    store.set_forgetting(options.policy);
    EXPECT(code_of([&] { store.forget({}, llvs::Control([](const llvs_progress &) { return false; })); }) == LLVS_ERROR_CANCELLED);
    report = store.forget();
    EXPECT(report.values == 1 && report.waiting.empty() && store.value("a", last)->data == "two");
    EXPECT(code_of([&] { store.value("a", first); }) == LLVS_ERROR_FORGOTTEN);
}

void verifying(const std::string &damaged) {
    llvs::Store whole = llvs::Store::memory();
    llvs::VersionID id = whole.make_version("", {llvs::Change::insert("x", "1"), llvs::Change::insert("y", "2")});
    llvs::VerifyReport report = whole.verify();
    EXPECT(report.versions == 1 && report.values == 2 && report.pending == 0 && report.damages.empty() && report.unfinished.empty());
    EXPECT(code_of([&] { whole.verify(llvs::Control([](const llvs_progress &) { return false; })); }) == LLVS_ERROR_CANCELLED);
    EXPECT(whole.statistics().versions == 1 && whole.statistics().heads == 1 && whole.reload() == 0);
    llvs::SizeReport sizes = whole.size();
    EXPECT(sizes.versions == 1 && sizes.bytes == whole.statistics().bytes && sizes.past_bytes == 0);
    EXPECT(sizes.by(LLVS_SIZE_BY_VERSION).size() == 1 && sizes.by(LLVS_SIZE_BY_KIND).size() == 5);
    llvs::SizeOptions each;
    each.prefix = "none/";
    each.depth = LLVS_SIZE_EACH_ID;
    EXPECT(whole.size(each).bytes == 0 && whole.size(each).by(LLVS_SIZE_BY_PREFIX).empty());
    EXPECT(code_of([&] { whole.size({}, llvs::Control([](const llvs_progress &) { return false; })); }) == LLVS_ERROR_CANCELLED);

    report = llvs::Store(damaged).verify();
    EXPECT(!report.damages.empty() && !report.damages[0].file.empty() && !report.damages[0].message.empty());
    llvs::CancelToken token;
    token.cancel();
    std::filesystem::remove_all("wrapper-salvaged");
    EXPECT(code_of([&] {
               llvs::salvage(damaged, "wrapper-salvaged", llvs::Store::options(), llvs::Store::options(), llvs::Control(token));
           }) == LLVS_ERROR_CANCELLED);
    std::filesystem::remove_all("wrapper-salvaged");
    EXPECT(!llvs::salvage(damaged, "wrapper-salvaged").damages.empty());
}

void logging() {
    std::mutex mutex;
    std::vector<std::string> messages;
    llvs::Observer log = llvs::observe_log([&](llvs_log_level level, std::string_view text) {
        std::lock_guard<std::mutex> lock(mutex);
        messages.push_back(std::to_string(level) + " " + std::string(text));
    }, LLVS_LOG_DEBUG);
    llvs::Observer throwing = llvs::observe_log([](llvs_log_level, std::string_view) { throw Thrown{4}; }, LLVS_LOG_DEBUG);
    const std::string path = "wrapper-log";
    std::filesystem::remove_all(path);
    {
        llvs::Store store(path);
        llvs::VersionID first = store.make_version("", {llvs::Change::insert("a value id to be found", "1")});
        store.make_version(first, {llvs::Change::insert("y", "2")});
        store.close();
    }
    // Damage is logged.
    spoil(path, "a value id to be found");
    auto look = [&] {
        try {
            llvs::Store store(path);
            store.history();
        } catch (const llvs::Error &) {
        }
    };
    look();
    log.close();
    EXPECT(!messages.empty() && thrown_by([&] { throwing.close(); }) == 4);
    std::size_t count = messages.size();
    look();
    verifying(path);
    EXPECT(messages.size() == count);
    EXPECT(code_of([] { llvs::observe_log([](llvs_log_level, std::string_view) {}, 77); }) == LLVS_ERROR_INVALID_ARGUMENT);
}

void cancellation() {
    llvs::Store one = llvs::Store::memory(), two = llvs::Store::memory();
    llvs::VersionID last;
    for (int i = 0; i < 20; i++) last = one.make_version(last, {llvs::Change::update("x", std::to_string(i))});
    llvs::Exchange sending(one, "memory:wrapper-cancelled"), receiving(two, "memory:wrapper-cancelled");
    llvs::CancelToken token;
    EXPECT(!token.cancelled());
    {
        llvs::Store store = llvs::Store::memory();
        llvs::VersionID a = store.make_version("", {llvs::Change::insert("a/1", "1"), llvs::Change::insert("b/1", "2")});
        llvs::VersionID b = store.make_version("", {llvs::Change::insert("a/1", "3")});
        llvs::Control never([](const llvs_progress &) { return false; });
        llvs::MergeOptions merging;
        merging.control = never;
        EXPECT(code_of([&] { store.changes(a, {}, never); }) == LLVS_ERROR_CANCELLED);
        EXPECT(code_of([&] { store.differences(a, b, {}, never); }) == LLVS_ERROR_CANCELLED);
        EXPECT(code_of([&] { store.merge(a, b, llvs::Arbiter::ours(), merging); }) == LLVS_ERROR_CANCELLED);
        EXPECT(code_of([&] { store.revert(a, a, merging); }) == LLVS_ERROR_CANCELLED);
        EXPECT(store.history().size() == 2 && store.changes(a).size() == 2);
        EXPECT(store.changes(a, "b/").size() == 1 && store.changes(a, "b/")[0].id == "b/1");
    }
    {
        llvs::Control hearing(token, [](const llvs_progress &progress) { return progress.stage != LLVS_STAGE_READING; });
        llvs_store_options opening = llvs::Store::options();
        opening.control = hearing;
        EXPECT(code_of([&] { llvs::Store store("wrapper-cancelled", opening); }) == LLVS_ERROR_CANCELLED);
        llvs_coordinator_options coordinated = llvs::Coordinator::options();
        coordinated.store = &opening;
        EXPECT(code_of([&] { llvs::Coordinator coordinator("wrapper-cancelled", coordinated); }) == LLVS_ERROR_CANCELLED);
    }
    int heard = 0;
    sending.send(llvs::Control(token, [&](const llvs_progress &progress) { return progress.total >= progress.completed && ++heard > 0; }));
    EXPECT(heard > 0);
    EXPECT(code_of([&] { receiving.retrieve(llvs::Control([](const llvs_progress &) { return false; })); }) == LLVS_ERROR_CANCELLED);
    EXPECT(thrown_by([&] { receiving.retrieve(llvs::Control([](const llvs_progress &) -> bool { throw Thrown{6}; })); }) == 6);
    token.cancel();
    EXPECT(token.cancelled() && code_of([&] { receiving.retrieve(llvs::Control(token)); }) == LLVS_ERROR_CANCELLED);
    EXPECT(receiving.retrieve().retrieved.size() == 20);
}

void merging() {
    llvs::Store store = llvs::Store::memory();
    llvs::VersionID base = store.make_version("", {llvs::Change::insert("x", "0")});
    llvs::VersionOptions draft;
    draft.branch = "draft";
    llvs::VersionID left = store.make_version(base, { llvs::Change::insert("l", "1") }),
                    right = store.make_version(base, { llvs::Change::insert("r", "1") }, draft);
    llvs::MergeOptions options;
    options.metadata["why"] = "\"tests\"";
    EXPECT(!store.merge_heads(left, llvs::Arbiter::most_recent_change(), options)); // the other head is on a branch
    options.selection = LLVS_HEADS_BRANCHES;
    options.branches = {"draft"};
    std::optional<llvs::Version> merged = store.merge_heads(left, llvs::Arbiter::most_recent_change(), options);
    EXPECT(merged && merged->metadata.at("why") == "\"tests\"" && store.count(merged->id) == 3);
    llvs::VersionID apart = store.make_version("", {llvs::Change::insert("x", "2")});
    options.relation = LLVS_RELATION_RELATED;
    EXPECT(code_of([&] { store.merge(left, apart, llvs::Arbiter::most_recent_change(), options); }) == LLVS_ERROR_NO_COMMON_ANCESTOR);
    llvs::CancelToken token;
    token.cancel();
    llvs::Control control(token);
    options.control = control;
    options.selection = LLVS_HEADS_ALL;
    EXPECT(code_of([&] { store.merge_heads(left, llvs::Arbiter::most_recent_change(), options); }) == LLVS_ERROR_CANCELLED);
}

} // namespace

int main() {
    storages();
    transports();
    files();
    arbiters_of_many_threads();
    observers();
    syncing();
    logging();
    erasing();
    forgetting();
    cancellation();
    merging();
    return 0;
}
