import LLVSTestSupport
import Testing
@testable import LLVS

@Suite struct CloudTokensTests {
    /// A program that hangs while it holds the lock must not hold up all others for ever.
    @Test func aLockThatIsNeverLetGoOfIsTold() throws {
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
}
