import LLVSCore
import LLVSNetwork
import LLVSTestHelpers
import Testing

@testable import LLVSCloud
@testable import LLVSExchange

@Suite struct CloudTokensTests {
    /// A program that hangs while it holds the lock must not block all others for ever.
    @Test func aLockThatIsNeverReleasedIsReported() throws {
        let directory = TemporaryDirectory(), path = directory.path + "/tokens.json"
        try FolderFiles.writeNew(DirectoryEntry(path), OutgoingFile(Array(#"{"access_token": "a", "refresh_token": "r"}"#.utf8)))
        let held = try OpenFile(DirectoryEntry(path + ".lock"), O_RDWR | O_CREAT)
        try System.lockExclusively(held.descriptor)
        let tokens = CloudTokens(
            TokenFile(path, patience: 0.05), try CloudFolder("///notes", DriveFiles.service), settings: HTTPSettings())
        defer { tokens.close() }
        #expect(try tokens.credentials(refused: nil, {}).token == "a")
        do {
            _ = try tokens.credentials(refused: HTTPCredentials(token: "a"), {})
            Issue.record("it did not wait for the lock")
        } catch let error as StoreError {
            #expect(error.code == .busy && error.path == path + ".lock")
        }
        withExtendedLifetime(held) {}
    }

    /// A callback runs while tokens are renewed. If it makes a call that renews them too, that call would wait for itself.
    @Test(.timeLimit(.minutes(15))) func aHolderOfTheLockIsRefusedAtOnce() throws {
        let (directory, path) = try tokens(), file = TokenFile(path)
        try file.withLock({}) {
            // A waiting call polls its check.
            var looks = 0
            let error = #expect(throws: StoreError.self) { try TokenFile(path).withLock({ looks += 1 }) {} }
            #expect(error?.code == .busy && looks == 0)
            // Other tokens have a lock of their own.
            let (other, elsewhere) = try tokens()
            try TokenFile(elsewhere).withLock({}) {}
            withExtendedLifetime(other) {}
        }
        try file.withLock({}) {}
        withExtendedLifetime(directory) {}
    }

    private func tokens() throws -> (directory: TemporaryDirectory, path: String) {
        let directory = TemporaryDirectory(), path = directory.path + "/tokens.json"
        try FolderFiles.writeNew(DirectoryEntry(path), OutgoingFile(Array(#"{"access_token": "a"}"#.utf8)))
        return (directory, path)
    }

    /// Only its owner may open the lock file, regardless of who created it with which permissions: a process that can open it can hold the
    /// lock.
    @Test func otherUsersCannotOpenTheLock() throws {
        let (directory, path) = try tokens(), place = DirectoryEntry(path + ".lock")
        let made = try OpenFile(place, O_RDWR | O_CREAT)
        try System.setPermissions(made.descriptor, 0o666)
        try TokenFile(path, patience: 0.05).withLock({}) {}
        #expect(try place.status().permissions == 0o600)
        withExtendedLifetime(directory) {}
    }

    /// Another user has created the file and holds its lock.
    @Test(.enabled(if: geteuid() == 0)) func aLockOfAnotherUserLocksNoneOut() throws {
        let (directory, path) = try tokens(), place = DirectoryEntry(path + ".lock")
        let theirs = try OpenFile(place, O_RDWR | O_CREAT)
        #expect(fchown(theirs.descriptor, 65_534, 65_534) == 0)
        try System.lockExclusively(theirs.descriptor)
        var isHeld = false
        try TokenFile(path, patience: 0.05).withLock({}) { isHeld = true }
        #expect(try isHeld && place.status().owner == 0)
        withExtendedLifetime((directory, theirs)) {}
    }
}
