/// The cloud drives. A new one is added by one line here and a type that conforms to `RemoteFiles`.
package struct CloudService: Sendable {
    package let about: CloudFolder.Service
    package let open:
        @Sendable (_ place: CloudFolder, _ tokens: (any TokenKeeper)?, _ settings: HTTPSettings, _ mustExist: Bool) -> any RemoteFiles

    package static let all = [
        CloudService(about: DriveFiles.service) { DriveFiles($0, tokens: $1, settings: $2, mustExist: $3) },
        CloudService(about: OneDriveFiles.service) { OneDriveFiles($0, tokens: $1, settings: $2, mustExist: $3) },
        CloudService(about: BoxFiles.service) { BoxFiles($0, tokens: $1, settings: $2, mustExist: $3) },
        CloudService(about: PCloudFiles.service) { PCloudFiles($0, tokens: $1, settings: $2, mustExist: $3) },
    ]
}
