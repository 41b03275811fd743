// llvs.hpp: everything that it wraps behaves as llvs.h says, in the forms of C++.
#include "expect.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unistd.h>

static void stores() {
    llvs::Store store = llvs::Store::memory();
    llvs::VersionOptions options;
    options.branch = "draft";
    options.metadata["author"] = "\"ann\"";
    std::string bytes("\0binary\xFF", 8);
    llvs::VersionID a = store.make_version(
        "", { llvs::Change::insert("x", bytes), llvs::Change::insert("y/1", "1"), llvs::Change::insert("y/2", "") }, options);
    llvs::VersionID b = store.make_version(a, {llvs::Change::update("x", "2"), llvs::Change::remove("y/1")});
    EXPECT(store.value("x", a)->data == bytes);
    EXPECT(store.value("x", b)->stored_version == b);
    EXPECT(!store.value("absent", b));
    EXPECT(store.version(a)->branch == std::optional<std::string>("draft"));
    EXPECT(store.version(a)->metadata.at("author") == "\"ann\"");
    EXPECT(!store.version("UNKNOWN"));
    EXPECT(store.most_recent_head()->id == b && store.heads().size() == 1 && store.history().size() == 2);
    EXPECT(store.is_ancestor(a, b) && !store.is_ancestor(b, a));
    EXPECT(store.versions_of("x").size() == 2 && store.count(b) == 2);
    llvs::HistoryOptions news;
    news.hiding = {a};
    EXPECT(store.history(news).size() == 1 && store.history(news)[0].id == b);
    auto changed = store.value_history("y/1");
    EXPECT(changed.size() == 2 && changed[0].first.id == b && changed[0].second == LLVS_CHANGE_REMOVE &&
           changed[1].second == LLVS_CHANGE_INSERT);
    EXPECT(store.branches().empty() && store.path().empty() && store.differences(a, b, "y/").size() == 1);
    std::string backwards;
    store.for_each(a, [&](const llvs::Value &value) { backwards += value.id + ";"; }, "y/", true);
    EXPECT(backwards == "y/2;y/1;");
    std::string seen;
    store.for_each(a, [&](llvs::Value value) { seen += value.id + ";"; }, "y/");
    EXPECT(seen == "y/1;y/2;");
    EXPECT(!store.values({"y/1", "x"}, b)[0] && store.values({"y/1", "x"}, b)[1]->data == "2");
    std::vector<llvs::Change> differences = store.differences(a, b);
    EXPECT(differences.size() == 2 && differences[0].kind == LLVS_CHANGE_UPDATE && differences[0].data == "2");
    EXPECT(store.changes(b).size() == 2);
    llvs::Reverted reverted = store.revert(b, b);
    EXPECT(store.value("x", reverted.version->id)->data == bytes && reverted.undone.size() == 2 && reverted.superseded.empty());
    llvs::VersionID later = store.make_version(reverted.version->id, {llvs::Change::update("x", "3")});
    reverted = store.revert(b, later);
    EXPECT(!reverted.version && reverted.undone.empty() && reverted.superseded == std::vector<std::string>{"x"});
    EXPECT(!store.revert(b, a).version);
    EXPECT(code_of([&] { store.value("x", "UNKNOWN"); }) == LLVS_ERROR_UNKNOWN_VERSION);
    try {
        store.value("x", "UNKNOWN");
    } catch (const llvs::Error &error) { EXPECT(error.version_id() == "UNKNOWN" && error.system_code() == 0); }
    llvs_store_options reading = llvs::Store::options();
    reading.must_exist = 1;
    try {
        llvs::Store("not/there", reading);
        EXPECT(false);
    } catch (const llvs::Error &error) { EXPECT(error.code() == LLVS_ERROR_NOT_FOUND && error.system_code() == ENOENT); }
    llvs::Store moved = std::move(store);
    EXPECT(moved.heads().size() == 1);
    EXPECT(code_of([&] { store.heads(); }) == LLVS_ERROR_INVALID_ARGUMENT);
    moved.close();
    EXPECT(code_of([&] { moved.heads(); }) == LLVS_ERROR_CLOSED);
}

// How far the ids of the heads vouch for their ancestors.
static void vouching() {
    llvs::Store store = llvs::Store::memory();
    llvs::VersionID computed = store.make_version("", {llvs::Change::insert("x", "1")});
    store.make_version(computed, {llvs::Change::update("x", "2")});
    llvs::VerifyReport report = store.verify();
    EXPECT(report.versions == 2 && report.vouched == 2 && report.unvouched == 0);
    llvs::VersionOptions named;
    named.id = "of-the-caller";
    store.make_version(computed, {}, named);
    report = store.verify();
    EXPECT(report.versions == 3 && report.vouched == 2 && report.unvouched == 1);
}

static void compaction() {
    const std::string path = "wrapper-compaction";
    llvs_store_options options = llvs::Store::options();
    options.compaction = LLVS_COMPACTION_ON_REQUEST;
    for (int i = 0; i < 3; i++) {
        llvs::Store store(path, options);
        store.make_version("", {llvs::Change::insert("x", std::to_string(i))});
        store.close();
    }
    std::FILE *marker = std::fopen((path + "/.stfolder").c_str(), "w");
    EXPECT(marker);
    std::fclose(marker);
    llvs::CompactionReport refused = llvs::Store(path, options).compact();
    EXPECT(refused.made == 0 && refused.sync_marker && refused.sync_marker->find("/.stfolder") != std::string::npos);
    options.compaction = LLVS_COMPACTION_ALWAYS;
    llvs::Store store(path, options);
    llvs::CompactionReport report = store.compact();
    EXPECT(report.made == 1 && report.folded == 3 && report.deleted == 0 && report.bytes_written > 0 && !report.sync_marker);
    store.close();
    EXPECT(code_of([&] { store.compact(); }) == LLVS_ERROR_CLOSED);
}

static void salvaging() {
    llvs::VersionID id;
    {
        llvs::Store store("damaged.llvs");
        id = store.make_version("", {llvs::Change::insert("x", "1")});
        store.close();
    }
    llvs::SalvageReport report = llvs::salvage("damaged.llvs", "salvaged.llvs");
    EXPECT(report.versions == 1 && report.waiting == 0 && report.made.empty() && report.damages.empty());
    EXPECT(llvs::Store("salvaged.llvs").value("x", id)->data == "1");
    EXPECT(code_of([&] { llvs::salvage("damaged.llvs", "salvaged.llvs"); }) == LLVS_ERROR_STORE_NOT_EMPTY);
}

static void merging_inside_values() {
    llvs::MergedValue merged = llvs::merge_values("{\"n\":1}", "{\"n\":2,\"t\":1}", "{\"n\":3,\"t\":2}", "{\"/n\":\"counter\"}");
    EXPECT(merged.data == "{\"n\":4,\"t\":1}" && merged.source == LLVS_MERGED_COMPUTED && merged.digest.size() == 64);
    EXPECT(merged.conflicts.size() == 1 && merged.conflicts[0].kind == LLVS_CONFLICT_PICK && merged.conflicts[0].path == "[\"t\"]");
    EXPECT(!merged.conflicts[0].base && merged.conflicts[0].older == "2" && !merged.conflicts[0].rule);
    EXPECT(!llvs::merge_values("1", std::nullopt, "1").data);
    EXPECT(code_of([&] { llvs::check_schema("{}"); }) == LLVS_ERROR_INVALID_ARGUMENT);
    llvs::check_schema("{\"merge\":1}");
}

static void merging_by_rules() {
    llvs::Store store("wrapper-rules.llvs");
    llvs::VersionID base = store.make_version("", {llvs::Change::insert("n", "1")});
    llvs::VersionID a = store.make_version(base, {llvs::Change::update("n", "3")});
    llvs::VersionID b = store.make_version(base, {llvs::Change::update("n", "5")});
    llvs::Version merged = store.merge(a, b, llvs::Arbiter::rules("\"counter\""));
    EXPECT(store.value("n", merged.id)->data == "7");
    EXPECT(code_of([&] { llvs::Arbiter::rules("{\"merge\":1,\"ids\":7}"); }) == LLVS_ERROR_INVALID_ARGUMENT);
    const std::string rules = "{\"merge\":1,\"ids\":{\"n\":\"counter\"}}";
    llvs::VersionID ruled = store.make_version(merged.id, {llvs::Change::insert("__llvs_schema", rules)});
    llvs::Schema schema = store.schema(ruled, "{\"merge\":1,\"ids\":{\"n\":\"set\",\"t\":\"set\"}}");
    EXPECT(schema.changed && schema.data == "{\"ids\":{\"n\":\"counter\",\"t\":\"set\"},\"merge\":1}" && schema.stored_version == ruled);
    llvs::VersionID left = store.make_version(ruled, { llvs::Change::update("n", "[1]") }),
                    right = store.make_version(ruled, { llvs::Change::update("n", "[2]") });
    EXPECT(store.conflicts(left, right).records.at(0).kind == LLVS_CONFLICT_TYPE);
    llvs::Version picked = store.merge(left, right);
    llvs::Conflicts open = store.open_conflicts(picked.id), explained = store.explain(picked.id);
    EXPECT(open.records.size() == 1 && explained.recorded && explained.digest.size() == 64 && open.records[0].version == picked.id);
    llvs::VersionID chosen = store.make_version(picked.id, store.choose(open.records[0], LLVS_CHOICE_OLDER, picked.id));
    EXPECT(store.value("n", chosen)->data == "[1]" && store.open_conflicts(chosen).records.empty());
    llvs::Arbiter joins = llvs::Arbiter::value_merger([](const llvs::ValueQuestion &asked) -> llvs::ValueAnswer {
        EXPECT(asked.path == "[]" && asked.base && asked.newer && asked.older);
        if (asked.id == "t") throw Thrown{7};
        return {*asked.newer + *asked.older};
    });
    llvs::Store plain = llvs::Store::memory();
    llvs::VersionID start = plain.make_version("", {llvs::Change::insert("x", "0"), llvs::Change::insert("t", "0")});
    llvs::VersionID first = plain.make_version(start, { llvs::Change::update("x", "1") }),
                    second = plain.make_version(start, { llvs::Change::update("x", "2") });
    EXPECT(plain.value("x", plain.merge(first, second, joins).id)->data == "21");
    first = plain.make_version(first, { llvs::Change::update("t", "1") }),
    second = plain.make_version(second, { llvs::Change::update("t", "2") });
    int thrown = 0;
    try { plain.merge(first, second, joins); } catch (const Thrown &one) { thrown = one.number; }
    EXPECT(thrown == 7);
    EXPECT(store.version_at(1e12)->id == chosen && !store.version_at(0, chosen));
    EXPECT(schema.contradictions.size() == 1 && schema.contradictions[0].newer == "\"counter\"" && !schema.version);
}

/// Returns `size` bytes, the same each time.
static std::string large(std::size_t size) {
    std::string data(size, 'x');
    for (std::size_t i = 0; i < size; i += 7) data[i] = static_cast<char>(i * i >> 5);
    return data;
}

static void parts() {
    const std::string path = "wrapper-parts", data = large(3000001);
    std::filesystem::remove_all(path);
    llvs::Store store(path);
    std::size_t given = 0;
    auto give = [&](std::uint8_t *buffer, std::size_t capacity) {
        std::size_t count = std::min({capacity, data.size() - given, std::size_t{100000}});
        data.copy(reinterpret_cast<char *>(buffer), count, given);
        given += count;
        return count;
    };
    std::istringstream stream(data);
    llvs::VersionOptions options;
    options.branch = "parts";
    options.sources = {{"given", give, data.size()}, llvs::ValueSource::stream("streamed", stream)};
    llvs::VersionID id = store.make_version("", {llvs::Change::insert("small", "1")}, options);
    EXPECT(store.version(id)->branch == std::optional<std::string>("parts"));
    for (const char *name : {"given", "streamed"}) {
        EXPECT(store.value(name, id)->data == data);
        llvs::ValueReader reader = *store.open_value(name, id);
        EXPECT(reader.size() == data.size() && reader.stored_version() == id);
        EXPECT(reader.read(1000000, 200000) == data.substr(1000000, 200000));
        EXPECT(reader.read(3000000, 10) == data.substr(3000000) && reader.read(3000001, 10).empty() && reader.read(UINT64_MAX, 10).empty());
        char two[2];
        EXPECT(reader.read(65535, two, 2) == 2 && data.compare(65535, 2, two, 2) == 0);
    }
    EXPECT(!store.open_value("absent", id));
    // An exception of a source comes out unchanged, and nothing is stored.
    options.sources = {{"thrown", [](std::uint8_t *, std::size_t) -> std::size_t { throw Thrown{7}; }}};
    int number = 0;
    try { store.make_version(id, {}, options); } catch (const Thrown &thrown) { number = thrown.number; }
    EXPECT(number == 7 && store.history().size() == 1);
    options.sources = {{"short", [](std::uint8_t *, std::size_t) -> std::size_t { return 0; }, 5}};
    EXPECT(code_of([&] { store.make_version(id, {}, options); }) == LLVS_ERROR_INVALID_ARGUMENT);
    options.sources = {{"much", [](std::uint8_t *, std::size_t capacity) { return capacity + 1; }}};
    EXPECT(code_of([&] { store.make_version(id, {}, options); }) == LLVS_ERROR_INVALID_ARGUMENT);

    llvs_store_options memory = llvs::Store::options();
    memory.storage = LLVS_STORAGE_MEMORY;
    llvs_coordinator_options settings = llvs::Coordinator::options();
    settings.store = &memory;
    settings.device = llvs_str("a");
    llvs::Coordinator coordinator("", settings);
    EXPECT(coordinator.register_schema("{\"merge\":1}").changed && coordinator.store().heads().empty());
    EXPECT(!coordinator.value("given") && !coordinator.undo() && !coordinator.redo(true));
    given = 0;
    llvs::VersionOptions more;
    more.sources = {{"given", give}};
    llvs::VersionID saved = coordinator.save({llvs::Change::insert("small", "1")}, more);
    EXPECT(saved == coordinator.current_version());
    std::optional<llvs::Reverted> told = coordinator.undo(true), undone = coordinator.undo();
    EXPECT(told && !told->version && told->versions == undone->versions && undone->versions.at(0) == saved && undone->undone.size() == 2);
    EXPECT(!coordinator.value("small"));
    std::optional<llvs::Reverted> redone = coordinator.redo();
    EXPECT(redone->version->id == coordinator.current_version() && coordinator.value("small")->data == "1");
    EXPECT(coordinator.revert(saved).version && !coordinator.value("small"));
    llvs::VersionOptions reading;
    reading.expected = coordinator.save({llvs::Change::insert("read", "1")});
    reading.merges = true;
    coordinator.save({llvs::Change::update("read", "2")});
    EXPECT(coordinator.save({llvs::Change::update("read", "3")}, reading) != coordinator.current_version());
    EXPECT(coordinator.value("read")->data == "3");
    EXPECT(coordinator.store().cherry_pick(saved, coordinator.current_version()).undone.size() == 2);
    coordinator.redo();
    EXPECT(coordinator.store().open_value("given", saved)->read(2999990, 100) == data.substr(2999990));
}

static void finding() {
    llvs::Store store = llvs::Store::memory();
    llvs::VersionID first = store.make_version("", {
        llvs::Change::insert("c/1", R"({"name":"Smith","n":1.0})"), llvs::Change::insert("c/2", R"({"name":"smith","n":2})"),
        llvs::Change::insert("c/3", R"({"name":"Jones"})"),
    });
    llvs::VersionID second = store.make_version(first, {llvs::Change::update("c/1", R"({"name":"Brown"})")});
    llvs::Index index = llvs::Index::defined(store, R"({"prefix":"c/","on":["/name","/n"],"text":"fold"})");
    using Question = llvs::IndexQuestion;
    EXPECT(index.ids(Question::find(R"(["SMITH"])"), first) == (std::vector<std::string>{"c/1", "c/2"}));
    EXPECT(index.ids(Question::find(R"(["SMITH"])")) == std::vector<std::string>{"c/2"} && index.count({}, second) == 3);
    EXPECT(index.ids(Question::prefix("j"), first) == std::vector<std::string>{"c/3"});
    Question backwards = Question::range(R"(["jones"])", R"(["smith",1])");
    backwards.reverse = true;
    EXPECT(index.ids(backwards, first) == (std::vector<std::string>{"c/1", "c/3"}));
    llvs::IndexPage page = index.page({}, first, LLVS_INDEX_KEYS | LLVS_INDEX_VALUES | LLVS_INDEX_COUNT, {}, 2);
    EXPECT(page.total == 3 && page.entries.size() == 2 && page.entries[0].key == R"(["Jones",{}])" && page.entries[1].id == "c/1");
    EXPECT(page.entries[1].data == R"({"name":"Smith","n":1.0})" && !page.cursor.empty());
    page = index.page({}, first, 0, page.cursor);
    EXPECT(page.entries.size() == 1 && page.entries[0].id == "c/2" && page.entries[0].key.empty() && !page.entries[0].data);
    EXPECT(index.explain("c/9", first).find(R"("why":"no-value")") != std::string::npos);
    EXPECT(code_of([&] { llvs::Index::named(store, "none").count(); }) == LLVS_ERROR_NOT_FOUND);
    EXPECT(code_of([&] { llvs::Index::defined(store, "{}"); }) == LLVS_ERROR_INVALID_ARGUMENT);
    // An index with keys from a function.
    llvs::ComputedIndexOptions computed;
    computed.prefix = "c/";
    bool fails = false;
    llvs::Index sizes = llvs::Index::computed(store, computed, [&](std::string_view id, std::string_view data) {
        if (fails) throw std::out_of_range(std::string(id));
        return std::vector<std::string>{"[" + std::to_string(data.size()) + "]", "[\"" + std::string(id) + "\"]"};
    });
    EXPECT(sizes.ids(Question::find("[16]"), first) == std::vector<std::string>{"c/3"} && sizes.count({}, first) == 6);
    EXPECT(sizes.ids(Question::find(R"(["c/2"])")) == std::vector<std::string>{"c/2"});
    fails = true;
    llvs::VersionID third = store.make_version(second, {llvs::Change::insert("c/4", "no JSON")});
    bool thrown = false;
    try {
        sizes.count({}, third);
    } catch (const std::out_of_range &error) { thrown = std::string(error.what()) == "c/4"; }
    EXPECT(thrown && sizes.count({}, first) == 6);
    fails = false;
    EXPECT(sizes.ids(Question::find("[7]"), third) == std::vector<std::string>{"c/4"});
    auto none = [](std::string_view, std::string_view) { return std::vector<std::string>{"[]"}; };
    EXPECT(code_of([&] { llvs::Index::computed(store, computed, none).count(); }) == LLVS_ERROR_INVALID_ARGUMENT);
    computed.parts = 9;
    EXPECT(code_of([&] { llvs::Index::computed(store, computed, none); }) == LLVS_ERROR_INVALID_ARGUMENT);
    llvs_store_options memory = llvs::Store::options();
    memory.storage = LLVS_STORAGE_MEMORY;
    llvs_coordinator_options settings = llvs::Coordinator::options();
    settings.store = &memory;
    llvs::Coordinator coordinator("", settings);
    coordinator.register_schema(R"({"merge":1,"indexes":{"by-name":{"prefix":"c/","on":["/name"]}}})");
    coordinator.save({llvs::Change::insert("c/1", R"({"name":"Ann"})")});
    EXPECT(llvs::Index::named(coordinator, "by-name", true).ids(Question::find(R"(["Ann"])")) == std::vector<std::string>{"c/1"});
}

static void projections() {
    const std::string folder = "wrapper-projections";
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
    const char *definition = R"({"tables":{"people":{"prefix":"c/","columns":[{"name":"born","pointer":"/born","type":"integer"}]}}})";
    llvs::Store store = llvs::Store::memory();
    llvs::VersionID first = store.make_version("", {llvs::Change::insert("c/1", R"({"born":1815})"), llvs::Change::insert("c/2", "no")});
    llvs::Projection view(store, folder + "/view.sqlite", definition);
    EXPECT(view.status() == R"({"version":null,"failure":null})");
    EXPECT(view.update() == 2 && view.update(first) == 0);
    EXPECT(view.status() == R"({"version":")" + first + R"(","failure":null})");
    EXPECT(view.problems() == R"([{"number":1,"table":"people","id":"c/2","pointer":"","reason":"not-json"}])");
    EXPECT(view.problems(1) == "[]");
    EXPECT(code_of([&] { view.update("none"); }) == LLVS_ERROR_UNKNOWN_VERSION);
    EXPECT(code_of([&] { llvs::Projection(store, folder + "/view.sqlite", "{}"); }) == LLVS_ERROR_INVALID_ARGUMENT);
}

static void connections_that_the_library_carries() {
    llvs::Store a = llvs::Store::memory(), b = llvs::Store::memory();
    const std::string pairing = llvs::make_pairing();
    llvs::VersionID first = a.make_version("", {llvs::Change::insert("x", "1")});
    llvs::Listener listener("127.0.0.1:0");
    EXPECT(code_of([&] { listener.invite(pairing); }) == LLVS_ERROR_NOT_FOUND);
    listener.offer(a, pairing);
    EXPECT(!listener.accept(0));
    {
        llvs::PeerOptions how;
        how.invitation = listener.invite(pairing);
        llvs::Peer peer = llvs::Peer::connect(b, listener.address(), how);
        EXPECT(peer.wait(30) && peer.state().pairing == pairing && b.value("x", first)->data == "1");
        std::optional<llvs::Peer> met = listener.accept(5);
        EXPECT(met && met->state().sent == 1);
        peer.close();
    }
    listener.compare(pairing, 0.001);
    EXPECT(code_of([&] { llvs::Listener(listener.address()); }) == LLVS_ERROR_TRANSPORT);
    llvs::PeerOptions how;
    how.pairing = pairing;
    llvs::Peer alone(b, how);
    EXPECT(code_of([&] { alone.carry(-1); }) == LLVS_ERROR_IO);
}

static void direct_connections() {
    llvs::Store a = llvs::Store::memory(), b = llvs::Store::memory();
    const std::string pairing = llvs::make_pairing(), identity(LLVS_DEVICE_KEY_SIZE, 'i');
    EXPECT(pairing.size() == LLVS_PAIRING_SIZE && pairing != llvs::make_pairing());
    llvs::PeerOptions how;
    how.pairing = pairing;
    how.accepted = {llvs::device_key(identity)};
    llvs::Peer two(b, how);
    how = {};
    how.initiator = true;
    how.pairing = pairing;
    how.identity = identity;
    how.device = "phone";
    llvs::Peer one(a, how);
    llvs::VersionID first = a.make_version("", {llvs::Change::insert("x", "1")});
    auto carry = [](llvs::Peer &from, llvs::Peer &to) {
        for (std::string data = from.send(100); !data.empty(); data = from.send(100)) to.receive(data);
    };
    const std::string beginning = one.send(LLVS_PEER_BEGINNING);
    EXPECT(llvs::pairing_matches(pairing, beginning) && !llvs::pairing_matches(llvs::make_pairing(), beginning));
    two.receive(beginning);
    for (int round = 0; round < 10; round++) {
        carry(one, two);
        carry(two, one);
    }
    EXPECT(one.state().phase == LLVS_PEER_IN_STEP && one.state().sent == 1);
    llvs::PeerState state = two.state();
    EXPECT(state.device == "phone" && state.key == llvs::device_key(identity) && state.received == 1 && state.problems.empty());
    EXPECT(b.value("x", first)->data == "1");
    b.make_version(first, {llvs::Change::update("x", "2")});
    two.store_changed();
    two.tick(1);
    carry(two, one);
    EXPECT(one.state().received == 1);
    two.close();
    for (int round = 0; round < 3; round++) {
        carry(two, one);
        carry(one, two);
    }
    EXPECT(two.state().phase == LLVS_PEER_ENDED && one.state().phase == LLVS_PEER_ENDED);
    one.receive_end();
    llvs::PeerOptions joining, inviting;
    joining.initiator = true;
    joining.invitation = inviting.invitation = llvs::make_invitation();
    inviting.pairing = pairing;
    llvs::Peer joins(a, joining), invites(b, inviting);
    for (int round = 0; round < 10; round++) {
        carry(joins, invites);
        carry(invites, joins);
    }
    EXPECT(joins.state().pairing == pairing && invites.state().pairing.empty());
    llvs::PeerOptions asking, giving;
    asking.initiator = asking.compares_digits = giving.compares_digits = true;
    giving.pairing = pairing;
    std::uint64_t allowed = 0;
    asking.quota = [&](std::uint64_t bytes) {
        if (bytes > 1000) throw llvs::Error(LLVS_ERROR_NO_SPACE, "no more than a thousand");
        allowed += bytes;
    };
    llvs::Store c = llvs::Store::memory();
    llvs::Peer asks(c, asking), gives(b, giving);
    auto both = [&] {
        for (int round = 0; round < 10; round++) {
            carry(asks, gives);
            carry(gives, asks);
        }
    };
    both();
    EXPECT(asks.state().digits.size() == 6 && asks.state().digits == gives.state().digits && asks.state().pairing.empty());
    gives.confirm();
    both();
    EXPECT(asks.state().pairing.empty() && c.history().empty());
    asks.confirm();
    both();
    EXPECT(asks.state().pairing == pairing && asks.state().phase == LLVS_PEER_IN_STEP && allowed > 0);
    b.make_version(first, {llvs::Change::update("x", std::string(5000, 'x'))});
    gives.store_changed();
    EXPECT(code_of([&] { carry(gives, asks); }) == LLVS_ERROR_NO_SPACE);
    llvs::Peer alone(a, how);
    EXPECT(code_of([&] { alone.receive_end(); }) == LLVS_ERROR_WRONG_KEY);
    how.pairing.pop_back();
    EXPECT(code_of([&] { llvs::Peer(a, how); }) == LLVS_ERROR_INVALID_ARGUMENT);
    EXPECT(code_of([] { llvs::observe_nearby([](const llvs::NearbyEvent &) {}, 0, std::string(64, 'x')); }) == LLVS_ERROR_INVALID_ARGUMENT);
}

static void merges() {
    llvs::Store store = llvs::Store::memory();
    llvs::VersionID base = store.make_version("", {llvs::Change::insert("x", "0")});
    llvs::VersionID left = store.make_version(base, {llvs::Change::update("x", "L")});
    llvs::VersionID right = store.make_version(base, {llvs::Change::update("x", "R")});
    EXPECT(store.merge_bases(left, right).at(0).id == base);
    llvs::Arbiter thrower([](const llvs::Merge &) -> std::optional<std::vector<llvs::Change>> { throw Thrown{42}; });
    int number = 0;
    try { store.merge(left, right, thrower); } catch (const Thrown &thrown) { number = thrown.number; }
    EXPECT(number == 42);
    llvs::Arbiter nobody([](const llvs::Merge &) { return std::nullopt; });
    EXPECT(code_of([&] { store.merge(left, right, nobody); }) == LLVS_ERROR_UNRESOLVED_CONFLICT);
    EXPECT(store.history().size() == 3);
    llvs::Arbiter ours = llvs::Arbiter::ours();
    llvs::Arbiter joining([](const llvs::Merge &merge) -> std::optional<std::vector<llvs::Change>> {
        std::vector<llvs::Change> changes;
        for (std::size_t i = 0; i < merge.size(); i++) {
            const llvs_fork &fork = merge.fork(i);
            if (!fork.conflicting) continue;
            changes.push_back(llvs::Change::update(llvs::detail::string(fork.id), merge.value(fork, LLVS_SIDE_FIRST).value_or("") +
                                                                                      merge.value(fork, LLVS_SIDE_SECOND).value_or("")));
        }
        return changes;
    }, &ours);
    llvs::Version merged = store.merge(left, right, joining);
    EXPECT(merged.predecessors.size() == 2 && store.value("x", merged.id)->data == "RL");
    EXPECT(!store.merge_heads(merged.id));
}

static void exchanges() {
    llvs::Store one = llvs::Store::memory(), two = llvs::Store::memory();
    llvs::VersionID id = one.make_version("", {llvs::Change::insert("x", "1")});
    llvs::Exchange mine(one, "memory:wrapper"), theirs(two, "memory:wrapper");
    EXPECT(mine.send().sent == std::vector<llvs::VersionID>{id});
    llvs::ExchangeResult result = theirs.retrieve();
    EXPECT(result.retrieved == std::vector<llvs::VersionID>{id} && result.problems.empty());
    EXPECT(two.value("x", id)->data == "1");
    EXPECT(theirs.verify().retrieved.empty() && theirs.verify().problems.empty());
    EXPECT(code_of([&] { llvs::Exchange(one, "nothing"); }) == LLVS_ERROR_INVALID_ARGUMENT);
    llvs_exchange_options options = llvs::Exchange::options();
    options.durability = LLVS_DURABILITY_NORMAL;
    EXPECT(llvs::Exchange(two, "memory:wrapper", options).send().sent.empty());
    options.durability = 2;
    EXPECT(code_of([&] { llvs::Exchange(two, "memory:wrapper", options); }) == LLVS_ERROR_INVALID_ARGUMENT);
    // A server is not contacted before an exchange. Port 9 of this machine discards everything, if a service listens there at all.
    llvs_exchange_options access = llvs::Exchange::options();
    access.user = llvs_str("ann");
    access.password = llvs_str("s3cret");
    access.timeout = 1000;
    llvs::Exchange server(one, "http+webdav://127.0.0.1:9/", access);
    EXPECT(server.url() == "http+webdav://127.0.0.1:9/");
    EXPECT(code_of([&] { server.retrieve(); }) == LLVS_ERROR_TRANSPORT);
    EXPECT(code_of([&] { llvs::Exchange(one, "https+webdav://ann:s3cret@127.0.0.1/"); }) == LLVS_ERROR_INVALID_ARGUMENT);
}

static void packs() {
    llvs::Store one = llvs::Store::memory(), two = llvs::Store::memory();
    llvs::VersionID root = one.make_version("", {llvs::Change::insert("x", "1")});
    std::string stream;
    auto write = [&](std::string_view piece) { stream.append(piece); };
    std::size_t at = 0;
    auto read = [&](std::uint8_t *buffer, std::size_t capacity) {
        std::size_t count = std::min(capacity, stream.size() - at);
        std::copy_n(stream.data() + at, count, buffer);
        at += count;
        return count;
    };
    EXPECT(llvs::write_pack(one, {}, write).sent == std::vector<llvs::VersionID>{root});
    EXPECT(llvs::read_pack(two, read).retrieved == std::vector<llvs::VersionID>{root} && at == stream.size());
    llvs::VersionID child = one.make_version(root, {llvs::Change::update("x", "2")});
    stream.clear();
    at = 0;
    EXPECT(llvs::write_pack(one, {root, "unknown"}, write).sent == std::vector<llvs::VersionID>{child});
    EXPECT(llvs::read_pack(two, read).retrieved == std::vector<llvs::VersionID>{child} && two.value("x", child)->data == "2");
    int number = 0;
    try { llvs::write_pack(one, {}, [](std::string_view) { throw Thrown{7}; }); } catch (const Thrown &thrown) { number = thrown.number; }
    EXPECT(number == 7);
    auto broken = [](std::uint8_t *, std::size_t) -> std::size_t { throw Thrown{8}; };
    try { llvs::read_pack(two, broken); } catch (const Thrown &thrown) { number = thrown.number; }
    EXPECT(number == 8);
    EXPECT(code_of([&] { llvs::read_pack(two, [](std::uint8_t *, std::size_t) { return 0; }); }) == LLVS_ERROR_CUT_SHORT);
    llvs::PackOptions secret, none;
    secret.passphrase = "one two three";
    stream.clear();
    at = 0;
    llvs::write_pack(one, {}, write, nullptr, secret);
    EXPECT(stream.compare(0, 21, "age-encryption.org/v1") == 0);
    EXPECT(code_of([&] { llvs::read_pack(two, read, nullptr, none); }) == LLVS_ERROR_WRONG_KEY);
    at = 0;
    llvs::Store three = llvs::Store::memory();
    EXPECT(llvs::read_pack(three, read, nullptr, secret).retrieved.size() == 2);
    llvs::PackOptions bad;
    bad.recipients = {"nobody"};
    EXPECT(code_of([&] { llvs::write_pack(one, {}, write, nullptr, bad); }) == LLVS_ERROR_INVALID_ARGUMENT);
}

static void encrypted_places() {
    std::filesystem::path directory = std::filesystem::temp_directory_path() / ("llvs-encrypted-" + std::to_string(getpid()));
    std::filesystem::remove_all(directory);
    std::string url = "file://" + directory.string();
    llvs::Store one = llvs::Store::memory(), two = llvs::Store::memory();
    llvs::VersionID root = one.make_version("", {llvs::Change::insert("x", "1")});
    llvs::PlaceKeys keys, others, none;
    keys.passphrase = "one two three";
    keys.recipients = {"age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"};
    others.identities = {"AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX"};
    llvs::Exchange mine(one, url, keys);
    EXPECT(mine.send().sent == std::vector<llvs::VersionID>{root});
    EXPECT(mine.members().size() == 2);
    llvs::Exchange theirs(two, url, others);
    EXPECT(theirs.retrieve().retrieved == std::vector<llvs::VersionID>{root});
    EXPECT(code_of([&] { theirs.add_member("nobody", "name"); }) == LLVS_ERROR_INVALID_ARGUMENT);
    EXPECT(mine.pairing() == theirs.pairing(false) && mine.pairing().size() == LLVS_PAIRING_SIZE);
    {
        llvs::Listener listener("127.0.0.1:0");
        listener.offer(one, mine);
        llvs::PeerOptions how;
        how.exchange = &theirs;
        llvs::Peer peer = llvs::Peer::connect(two, listener.address(), how);
        EXPECT(peer.wait(30));
        how.place = "192.0.2.7";
        llvs::Peer carried(two, how);
    }
    mine.remove_member(keys.recipients[0]);
    EXPECT(mine.members().size() == 1 && mine.members()[0].kind == LLVS_MEMBER_PASSPHRASE);
    EXPECT(code_of([&] { mine.add_member(keys.recipients[0], "name"); }) == LLVS_ERROR_INVALID_ARGUMENT);
    mine.change_passphrase("four five six");
    mine.join_keys();
    EXPECT(mine.rekey() == 1);
    one.make_version(root, {llvs::Change::insert("y", "2")});
    EXPECT(mine.announce_move("somewhere").sent.size() == 1);
    one.make_version(root, {llvs::Change::insert("z", "3")});
    EXPECT(mine.enable_differences().sent.size() == 1);
    EXPECT(mine.retire().sent.empty());
    EXPECT(mine.remote_status()->epoch == 2 && mine.remote_status()->fingerprint.size() == 35 && mine.remote_status()->packs > 0);
    EXPECT(mine.remote_status()->layout == LLVS_LAYOUT_PACKED && mine.remote_status()->writers.size() == 1);
    EXPECT(mine.members().size() == 1);
    EXPECT(code_of([&] { llvs::Exchange late(two, url, keys); late.members(); }) == LLVS_ERROR_WRONG_KEY);
    mine.change_passphrase("one two three", true);
    EXPECT(code_of([&] { llvs::Exchange late(two, url, keys); late.members(); }) == LLVS_OK);
    EXPECT(code_of([&] { llvs::Exchange plain(two, url); }) == LLVS_ERROR_KEY_MISSING);
    EXPECT(code_of([&] { llvs::Exchange plain(two, url, none); }) == LLVS_ERROR_KEY_MISSING);
    std::filesystem::remove_all(directory);
}

/// A place of another store is refused, and joined if the caller requests it.
static void places_of_others() {
    std::filesystem::path directory = std::filesystem::temp_directory_path() / ("llvs-others-" + std::to_string(getpid()));
    for (std::string layout : {"interchange", "packed"}) {
        std::filesystem::remove_all(directory);
        std::string url = "file://" + directory.string() + "?layout=" + layout;
        llvs::Store one = llvs::Store::memory(), two = llvs::Store::memory();
        one.make_version("", {llvs::Change::insert("x", "1")});
        two.make_version("", {llvs::Change::insert("y", "1")});
        llvs::Exchange(one, url).send();
        std::filesystem::remove_all(directory);
        llvs::Exchange(two, url).send();
        llvs::Exchange mine(one, url);
        EXPECT(code_of([&] { mine.retrieve(); }) == LLVS_ERROR_NOT_FOUND && code_of([&] { mine.send(); }) == LLVS_ERROR_NOT_FOUND);
        mine.set_restoration_state("new");
        EXPECT(mine.retrieve().retrieved.size() == 1 && mine.send().sent.size() == 1 && mine.restoration_state() != "new");
    }
    std::filesystem::remove_all(directory);
}

static void coordinators() {
    llvs_store_options memory = llvs::Store::options();
    memory.storage = LLVS_STORAGE_MEMORY;
    llvs_coordinator_options options = llvs::Coordinator::options();
    options.store = &memory;
    llvs::Coordinator one("", options), two("", options);
    one.attach("memory:wrapper-coordinators");
    two.attach("memory:wrapper-coordinators");
    llvs::Move move;
    llvs::VersionID saved = one.save({llvs::Change::insert("x", "1")}, {}, &move), heard;
    EXPECT(move.moved && move.to == saved && !move.from.empty());
    one.exchange();
    {
        llvs::Observer observer = two.observe([&](const llvs::VersionID &version) { heard = version; });
        llvs::ExchangeResult result = two.exchange();
        EXPECT(result.move.moved && result.move.from == move.from && result.move.to == saved && heard == saved);
        EXPECT(result.exchanges.size() == 1 && result.exchanges[0].place == "memory:wrapper-coordinators");
        EXPECT(result.exchanges[0].code == LLVS_OK && result.exchanges[0].result.retrieved == result.retrieved);
    }
    EXPECT(two.value("x")->data == "1" && !two.exchange().move.moved);
    {
        // One exchange fails and the other does not: both are reported.
        const std::string path = std::filesystem::absolute("wrapper-broken").string();
        std::filesystem::remove_all(path);
        llvs::Coordinator three("", options);
        three.attach("file://" + path);
        three.attach("memory:wrapper-coordinators");
        std::filesystem::remove_all(path);
        std::ofstream(path) << "no folder";
        llvs::ExchangeResult done;
        llvs_status status = code_of([&] { three.exchange(nullptr, &done); });
        EXPECT(status != LLVS_OK && done.exchanges.size() == 2 && done.move.to == saved && done.retrieved.size() == 1);
        EXPECT(done.exchanges[0].code == status && !done.exchanges[0].message.empty() && done.exchanges[0].result.retrieved.empty());
        EXPECT(done.exchanges[1].code == LLVS_OK && done.exchanges[1].result.retrieved == done.retrieved);
    }
    {
        // An unreadable file in a folder is a problem of the round.
        const std::string path = std::filesystem::absolute("wrapper-foreign").string();
        std::filesystem::remove_all(path);
        llvs::Coordinator three("", options);
        three.attach("file://" + path);
        three.save({llvs::Change::insert("y", "1")});
        std::vector<llvs::Problem> problems;
        three.sync({}, &problems);
        EXPECT(problems.empty());
        std::ofstream(path + "/versions/no-version") << "x";
        three.sync({}, &problems);
        EXPECT(problems.size() == 1 && problems[0].name == "no-version");
        std::filesystem::remove_all(path);
    }
    two.save({llvs::Change::update("x", "2")});
    two.exchange();
    one.exchange();
    EXPECT(one.merge({}, &move) && move.from == saved && move.to == two.current_version() && !one.merge({}, &move) && !move.moved);
    EXPECT(one.value("x")->data == "2" && one.current_version() == two.current_version());
    EXPECT(one.store().heads().size() == 1);
    one.close();
    EXPECT(code_of([&] { one.merge(); }) == LLVS_ERROR_CLOSED);
}

int main() {
    stores();
    vouching();
    compaction();
    salvaging();
    merging_inside_values();
    merging_by_rules();
    parts();
    finding();
    projections();
    direct_connections();
    connections_that_the_library_carries();
    merges();
    exchanges();
    packs();
    encrypted_places();
    places_of_others();
    coordinators();
    return 0;
}
