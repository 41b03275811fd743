import LLVS
import Testing

@testable import LLVSExchange

/// In which order the files of a version get their names in a folder.
@Suite struct SendingOrderTests {
    /// A folder in the place of the changes keeps them from their name: others would wait for the changes of a version file that is there.
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
