import LLVSCore
import LLVSTestHelpers
import Testing

@testable import LLVSExchange

/// The order in which the files of a version are renamed to their names in a folder.
@Suite struct SendingOrderTests {
    /// A directory with the name of the changes prevents their renaming. If the version file existed by then, others would wait for the
    /// changes.
    @Test func aVersionGetsItsNameBehindItsChanges() throws {
        let temporary = TemporaryFolder()
        for place in ["changes", "changes/A"] { try FolderFiles.makeDirectory(temporary.path + "/" + place) }
        try temporary.write("changes/A/letter", "Dear all")
        let transport = try FolderTransport(path: temporary.path)
        let files = ExchangeFiles(name: "A", version: Array("{}".utf8), changes: Array("[]".utf8))
        #expect(code { try transport.send([files], OperationControl()) } == .foreignFile)
        #expect(try temporary.names("versions").isEmpty && temporary.names("tmp").isEmpty)
    }
}
