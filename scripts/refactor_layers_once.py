"""Applies the layering moves to a tree: python3 refactor.py /path/to/tree. Run by hand, then check and build."""
import os, re, subprocess, sys
os.chdir(sys.argv[1]); R='Sources/LLVS/'
def rd(p): return open(R+p).read()
def wr(p,s): open(R+p,'w').write(s)
def sub(p,a,b,n=1):
    s=rd(p); assert s.count(a)>=1,(p,a); wr(p,s.replace(a,b) if n==0 else s.replace(a,b,n))
def mv(a,b): os.makedirs(os.path.dirname(R+b),exist_ok=True); subprocess.check_call(['git','mv',R+a,R+b])
def everywhere(a,b,dirs=('Sources','Tests','Benchmarks')):
    out=subprocess.run(['grep','-rlP','--include=*.swift',a,*dirs],capture_output=True,text=True).stdout.split()
    for p in out:
        s=open(p).read(); t=re.sub(a,b,s)
        if t!=s: open(p,'w').write(t)
def block(p,start,end=None):
    """Cuts from the line beginning with `start` (with comment lines above) to the matching closing brace; returns it."""
    s=rd(p); i=s.index(start); i=s.rindex('\n',0,i)+1 if '\n' in s[:i] else 0
    # doc comments and attributes above
    while True:
        j=s.rfind('\n',0,max(i-1,0))+1
        line=s[j:i].strip()
        if i>0 and (line.startswith('///') or line.startswith('@')): i=j
        else: break
    k=s.index('{',s.index(start)); depth=0
    while True:
        if s[k]=='{': depth+=1
        if s[k]=='}':
            depth-=1
            if depth==0: break
        k+=1
    k=s.index('\n',k)+1
    cut=s[i:k]
    rest=s[:i].rstrip('\n')+'\n\n'+s[k:].lstrip('\n') if s[k:].strip() else s[:i].rstrip('\n')+'\n'
    wr(p,rest.lstrip('\n'))
    return cut

# Errors name a value id by its bytes; the model gives it its type.
p='Support/StoreError.swift'
sub(p,"    /// The value id concerned, where there is one.\n    public var valueID: ValueID?\n","    /// The bytes of the value id concerned, where there is one.\n    package var valueIDBytes: [UInt8]?\n")
sub(p,"_ message: String, valueID: ValueID? = nil, versionID: String? = nil, path: String? = nil, systemCode: Int32 = 0) {","_ message: String, versionID: String? = nil, path: String? = nil, systemCode: Int32 = 0) {")
sub(p,"        self.valueID = valueID\n","")
s=rd('Model/ValueID.swift')+'''
extension StoreError {
    /// The value id concerned, where there is one.
    public var valueID: ValueID? {
        get { valueIDBytes.map { ValueID(unchecked: $0) } }
        set { valueIDBytes = newValue?.bytes }
    }

    public init(_ code: Code, _ message: String, valueID: ValueID?, versionID: String? = nil, path: String? = nil, systemCode: Int32 = 0) {
        self.init(code, message, versionID: versionID, path: path, systemCode: systemCode)
        self.valueID = valueID
    }
}
'''
wr('Model/ValueID.swift',s)
# Clock
sub('Support/Clock.swift',"enum Clock {\n","enum Clock {\n    /// Between the beginning of the system's time and that of timestamps.\n    static let secondsFrom1970To2001 = 978_307_200.0\n\n")
sub('Support/Clock.swift',"Version.secondsFrom1970To2001","Clock.secondsFrom1970To2001")
sub('Model/Version.swift',"public static let secondsFrom1970To2001 = 978_307_200.0","public static let secondsFrom1970To2001 = Clock.secondsFrom1970To2001")
# Guarded
s=rd('Support/Guarded.swift'); wr('Support/Guarded.swift',s.replace('Guarded<Value>','Guarded<Content>').replace('value: Value','value: Content').replace('inout Value','inout Content'))
# Files
mv('Storage/File/OpenFile.swift','Support/OpenFile.swift'); mv('Storage/FileIdentity.swift','Support/FileIdentity.swift')
a=block('Storage/File/StoreDirectory.swift','    static func parent(of path'); b=block('Storage/File/StoreDirectory.swift','    static func withoutTrailingSlashes')
s=rd('Storage/File/StoreDirectory.swift'); wr('Storage/File/StoreDirectory.swift',re.sub(r'\n\n+}\n','\n}\n',s))
wr('Support/Paths.swift','/// Paths as text.\nenum Paths {\n'+a.replace('    static func parent','    /// The directory that it is in.\n    static func parent',1)+'\n'+b+'}\n')
everywhere(r'StoreDirectory\.parent\(',"Paths.parent("); everywhere(r'StoreDirectory\.withoutTrailingSlashes',"Paths.withoutTrailingSlashes")
# Observations
b=block('Exchange/ExchangeTransport.swift','public protocol ExchangeObservation')
s=rd('Support/Observers.swift'); i=s.index('/// Those who want to know of events'); wr('Support/Observers.swift',s[:i]+b+'\n'+s[i:])
mv('Exchange/ObservationThread.swift','Support/ObservationThread.swift')
mv('Format/JSONString.swift','Support/JSONString.swift')
# Blobs and pieces
b=block('Storage/Storage.swift','public struct BlobID'); wr('Model/BlobID.swift',b)
b=block('Storage/Storage.swift','public struct RecordPieces'); wr('Format/RecordPieces.swift',b)
# Identities that read records
b=block('Format/IdentityDigest.swift','extension Store {'); c=block('Format/ContentID.swift','extension Store {')
wr('Store/Store+Identity.swift','/// What recorded versions mean: whether two are the same, and whether one is what its id says.\n'+b.rstrip()[:-1].rstrip('\n')+'\n\n'+c.split('{\n',1)[1])
b=block('Format/InterchangeEncoder.swift','    static func changes(madeIn id')
wr('Exchange/InterchangeEncoder+Recorded.swift','extension InterchangeEncoder {\n'+b+'}\n')
sub('Format/InterchangeEncoder.swift','    private static func append(_ change: BorrowedChange','    static func append(_ change: BorrowedChange')
sub('Format/PieceReader.swift','limit: Int = ExchangeLimits.fileSize,','limit: Int,')
sub('Format/RecordReader.swift','FrameFormat.load(bytes, 8 * $0, UInt64.self) == directory[$0]','UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 8 * $0, as: UInt64.self)) == directory[$0]')
# Maps in a cache directory
sub('Map/FlatMap.swift','static let namePrefix = "map-"','static let namePrefix = CacheDirectory.mapPrefix')
s=rd('Storage/File/CacheDirectory+Mapping.swift'); wr('Storage/File/CacheDirectory+Mapping.swift',s.replace('FlatMap.namePrefix','CacheDirectory.mapPrefix'))
s=rd('Storage/File/CacheDirectory.swift'); i=s.index('{\n',s.index('class CacheDirectory'))+2
wr('Storage/File/CacheDirectory.swift',s[:i]+'    /// How the names of flat maps begin; of these the old ones go when a new one comes.\n    static let mapPrefix = "map-"\n\n'+s[i:])
# Kinds of errors
b=block('Store/Store+Repairing.swift','    static func isDamage('); c=block('Store/Store+Repairing.swift','    static func isOfOne(')
s=rd('Support/StoreError.swift')
def prop(t,name,body_from):
    return t
wr('Support/StoreError.swift',s.rstrip()+'''

extension StoreError.Code {
    /// Whether a failure to read tells that the bytes are not there any more, or not what they were.
    var isDamage: Bool { [.damaged, .io, .notFound].contains(self) }

    /// Whether a failure to read is of one record or file, and not of the call or of the process: a verification tells of it and goes on.
    var isOfOne: Bool {
        isDamage || [.newerFormat, .permission, .notAStore, .notADirectory, .invalidArgument, .tooLarge].contains(self)
    }
}
''')
everywhere(r'Store\.isOfOne\(([\w.]+)\)',r'\1.isOfOne'); everywhere(r'Store\.isDamage\(([\w.]+)\)',r'\1.isDamage')
# SQLite's pages
s=rd('Salvage/DatabasePages.swift'); a='''    /// Where an image of a page lies.
    struct Image { let isInLog: Bool; let offset: UInt64; let number: UInt32 }
'''; assert a in s
wr('Salvage/DatabasePages.swift',s.replace(a,'    typealias Image = SQLiteLog.PageImage\n'))
s=rd('Storage/SQLite/SQLiteLog.swift').replace('DatabasePages.Image','PageImage')
i=s.index('    /// The images of pages that transactions'); s=s[:i]+'    /// Where an image of a page lies, in the log or in the database.\n    struct PageImage { let isInLog: Bool; let offset: UInt64; let number: UInt32 }\n\n'+s[i:]
wr('Storage/SQLite/SQLiteLog.swift',s)
# Walks that take the store's lock
b=block('History/HistoryPass.swift','extension Store {'); wr('Store/Store+Walking.swift',b); mv('History/KnownAncestry.swift','Store/KnownAncestry.swift')
mv('Merge/RecordedSides.swift','Store/RecordedSides.swift'); mv('Merge/ChainChanges.swift','Store/ChainChanges.swift')
mv('Coordinator/KnownDifferences.swift','Merge/KnownDifferences.swift')
# The coordinator's note
s=rd('Coordinator/CoordinatorState.swift'); m=re.search(r'(    ///[^\n]*\n)*    static func currentName\(_ coordinator: String\)[^\n]*\n',s); print(repr(m.group(0)))
wr('Coordinator/CoordinatorState.swift',s.replace(m.group(0),'')); 
s=rd('Store/Store.swift').replace('CoordinatorState.currentName(name)','"coordinator-\\(name)"'); wr('Store/Store.swift',s)
# The other implementation
b='''/// Gives back what another implementation compressed: nil for bytes that it does not know.
'''
s=rd('Import/ForeignStoreDirectory.swift'); m=re.search(r'((?:///[^\n]*\n)*public typealias ForeignDecoder[^\n]*\n)',s); wr('Import/ForeignStoreDirectory.swift',s.replace(m.group(0),'').lstrip('\n'))
wr('Exchange/ForeignDecoder.swift',m.group(0))
a=block('Import/ForeignStoreDirectory.swift','    static func split('); c=block('Import/ForeignStoreDirectory.swift','    static func escaped('); d=block('Import/ForeignStoreDirectory.swift','    static func escapedAfterSplitting(')
wr('Exchange/ForeignFileNames.swift','/// How another implementation makes the names of files of ids.\nenum ForeignFileNames {\n'+a+c+d+'}\n')
everywhere(r'ForeignStoreDirectory\.(split|escaped|escapedAfterSplitting)\(',r'ForeignFileNames.\1(')
s=rd('Import/ForeignStoreDirectory.swift'); print(re.findall(r'.*\b(?:Self\.)?(?:split|escaped|escapedAfterSplitting)\(.*',s))
mv('Snapshot/SnapshotLimits.swift','Exchange/SnapshotLimits.swift')
