// Two devices in C++. Each saves by itself; they exchange through the program's own transport, and an arbiter joins conflicting texts.
#include <llvs.hpp>

#include <iostream>
#include <map>
#include <memory>
#include <string>

/// A shelf on which devices leave files for each other. Yours may be a server or a radio link.
class Shelf : public llvs::Transport {
public:
    void list(llvs::Reply &reply) override {
        for (const auto &file : versions_) reply.add(file.first);
    }
    void fetch_versions(const std::vector<std::string_view> &names, llvs::Reply &reply) override { fetch(versions_, names, reply); }
    void fetch_changes(const std::vector<std::string_view> &names, llvs::Reply &reply) override { fetch(changes_, names, reply); }
    void send(const std::vector<llvs::VersionFiles> &files, llvs::Reply &) override {
        for (const llvs::VersionFiles &file : files) {
            changes_[std::string(file.name)] = file.changes; // before the version, which refers to them
            versions_[std::string(file.name)] = file.version;
        }
    }

private:
    using Files = std::map<std::string, std::string>;
    static void fetch(const Files &files, const std::vector<std::string_view> &names, llvs::Reply &reply) {
        for (std::size_t i = 0; i < names.size(); i++)
            if (auto found = files.find(std::string(names[i])); found != files.end()) reply.set(i, found->second);
    }
    Files versions_, changes_;
};

/// Keeps the texts of both sides, the older side's first. It does not compare with an ancestor. An arbiter that does must look at all of
/// `fork.ancestors`: there are several if versions were merged with one another both ways (llvs.h at llvs_arbiter, branch_and_merge.c).
static std::optional<std::vector<llvs::Change>> join(const llvs::Merge &merge) {
    std::vector<llvs::Change> changes;
    for (std::size_t i = 0; i < merge.size(); i++) {
        const llvs_fork &fork = merge.fork(i);
        if (!fork.conflicting) continue;
        std::string text = merge.value(fork, LLVS_SIDE_SECOND).value_or("") + merge.value(fork, LLVS_SIDE_FIRST).value_or("");
        changes.push_back(llvs::Change::update(std::string(llvs::view(fork.id)), text));
    }
    return changes;
}

int main() {
    llvs::Observer log = llvs::observe_log([](llvs_log_level, std::string_view message) { std::cerr << message << "\n"; });
    auto shelf = std::make_shared<Shelf>();
    llvs::Arbiter joining(join);
    llvs_coordinator_options options = llvs::Coordinator::options();
    options.arbiter = joining.raw();
    llvs::Coordinator phone("phone.llvs", options), laptop("laptop.llvs", options);
    phone.attach("shelf", llvs::HostTransport(shelf));
    laptop.attach("shelf", llvs::HostTransport(shelf));
    llvs::Observer moved = phone.observe([](const llvs::VersionID &version) { std::cout << "the phone is at " << version << "\n"; });

    phone.save({llvs::Change::update("note", "milk\n")});
    laptop.save({llvs::Change::update("note", "bread\n")});
    llvs::CancelToken token; // for example for a button, on another thread
    for (llvs::Coordinator *device : {&phone, &laptop, &phone}) {
        llvs::ExchangeResult result = device->exchange(llvs::Control(token));
        for (const llvs::ExchangeResult::Problem &problem : result.problems) std::cerr << problem.name << ": " << problem.message << "\n";
        if (device->merge()) device->exchange();
    }
    std::cout << phone.value("note")->data;
    bool equal = phone.value("note")->data == laptop.value("note")->data && phone.current_version() == laptop.current_version();
    return equal && phone.value("note")->data.size() == 11 ? 0 : 1;
}
