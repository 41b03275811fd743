import LLVS

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Encodes objects as JSON and decodes them.
public enum ModelCoding {
    /// Encodes members that are picked by size, so that the order of the JSON values is that of the members. Called by code of `@Model`.
    public static func sortable<Member>(_ member: Member) -> Member { member }
    /// A date in UTC with six digits of the second, or more if it is between two microseconds. Called by code of `@Model`.
    /// - Throws: `EncodingError` for a date that is infinite or not a number, or not in the years 0 to 9999.
    public static func sortable(_ member: Date) throws -> String { try Moment.text(member, isSortable: true) }
    /// An optional date, as the function above gives a date; nil for nil.
    public static func sortable(_ member: Date?) throws -> String? { try member.map { try sortable($0) } }

    /// Does nothing: prevents the compiler's warning about unused variables. Called by code of `@Model`.
    public static func use<Members>(_ members: inout Members) {}

    /// Reads dates as text in ISO 8601 (`Moment`), and `Data` as base64.
    static func decoder() -> JSONDecoder {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .custom { decoder in
            let container = try decoder.singleValueContainer()
            let text = try container.decode(String.self)
            guard let date = Moment.date(text) else {
                throw DecodingError.dataCorruptedError(
                    in: container, debugDescription: "\"\(text)\" is no date and time with a zone as in ISO 8601")
            }
            return date
        }
        return decoder
    }

    /// Encodes a value as it is written in a member.
    static func jsonValue<Value: Encodable>(_ value: Value) throws -> JSONValue {
        try decoder().decode([JSONValue].self, from: Data(ModelEncoder.node(of: [value]).bytes)).first ?? .null
    }

    /// Encodes an object for writing.
    static func encoded<Model: StorableModel>(_ object: Model, _ id: ValueID) throws -> EncodedNode {
        do {
            let node = try ModelEncoder.node(of: object)
            guard !Model.upgrades.isEmpty else { return node }
            // (A value of a later form keeps its number, as it keeps everything that was not changed.)
            guard case .object(var members) = node.content else { return node }
            let form = EncodedNode(.scalar(Array("\(Model.form)".utf8)))
            guard members.updateValue(form, forKey: Model.formName) == nil else {
                throw Mismatch(inForm: Model.formName, "counts the forms: name another one by formName")
            }
            return EncodedNode(.object(members), of: object)
        } catch {
            throw StoreError(
                .invalidArgument, "The value \"\(id)\" cannot be written as \(Model.self): \(told(error).sentence). Nothing was saved.",
                valueID: id, path: told(error).member)
        }
    }

    /// Reads an object.
    /// - Parameter rules: their renames are used to read a value of a later form.
    static func read<Model: StorableModel>(
        _ type: Model.Type, _ bytes: [UInt8], _ id: ValueID, _ version: VersionID?, _ rules: MergeSchema
    ) throws -> Model {
        do {
            let named = try rules.withNames(ofForm: Model.form, lifted(type, bytes), id: id.bytes)
            return try decoder().decode(type, from: Data(named))
        } catch { throw refusal(type, bytes, id, version, error) }
    }

    /// The error for a value that cannot be read.
    static func refusal<Model: StorableModel>(
        _ type: Model.Type, _ bytes: [UInt8], _ id: ValueID, _ version: VersionID?, _ error: any Error
    ) -> ModelDecodingError {
        let told = told(error)
        return ModelDecodingError(id: id, version: version, bytes: bytes, model: "\(type)", member: told.member, reason: told.sentence)
    }

    /// An error about forms.
    private struct Mismatch: Error, CustomStringConvertible {
        let description: String
        var member = ""
        init(_ description: String) { self.description = description }
        /// An upgrade changed a counter or a text.
        init(_ problem: AddedMembers.Problem) { (description, member) = (problem.description, problem.member) }
        /// The member that counts the forms.
        init(inForm name: String, _ what: String) {
            description = "the member \"\(name)\" \(what)"
            member = "/" + JSONText.segment(name)
        }
    }

    /// Upgrades a value to the form that this program writes; parts that the upgrades do not change keep every byte. Values of that form or
    /// a later one are returned unchanged.
    static func lifted<Model: StorableModel>(_ type: Model.Type, _ bytes: [UInt8]) throws -> [UInt8] {
        let upgrades = Model.upgrades
        guard !upgrades.isEmpty else { return bytes }
        let before = try decoder().decode([String: JSONValue].self, from: Data(bytes))
        var members = before, form = 1
        switch before[Model.formName] {
        case nil: break
        case .int(let number) where number >= 1: form = number
        default: throw Mismatch(inForm: Model.formName, "is no number of a form; forms count from 1")
        }
        guard form < Model.form else { return bytes }
        for number in form..<Model.form {
            do { try upgrades[number - 1](&members) } catch {
                throw Mismatch("it cannot be upgraded from form \(number) to \(number + 1): \(error)")
            }
            members[Model.formName] = .int(number + 1)
        }
        let texts = try [before, members].map { try ModelEncoder.node(of: $0).bytes }
        if let added = AddedMembers(type), let problem = try added.problem(in: bytes, after: members) { throw Mismatch(problem) }
        let merged = try texts[0].withUnsafeBytes { before in
            try texts[1].withUnsafeBytes { after in
                try bytes.withUnsafeBytes { try DocumentMerge().saving.merge(base: before, newer: after, older: $0) }
            }
        }
        return merged.bytes ?? bytes
    }

    /// Returns the description of an error, and the member concerned, as a JSON pointer.
    private static func told(_ error: any Error) -> (member: String, sentence: String) {
        let context: (path: [any CodingKey], what: String)? =
            switch error {
            case DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context),
                DecodingError.dataCorrupted(let context):
                (context.codingPath, context.debugDescription)
            case DecodingError.keyNotFound(let key, let context): (context.codingPath + [key], "it is missing")
            case EncodingError.invalidValue(_, let context): (context.codingPath, context.debugDescription)
            default: nil
            }
        guard let context else { return ((error as? Mismatch)?.member ?? "", "\(error)") }
        let pointer = context.path.map { "/" + ($0.intValue.map { "\($0)" } ?? JSONText.segment($0.stringValue)) }.joined()
        return (pointer, (pointer.isEmpty ? "" : "the member \"\(pointer)\": ") + context.what)
    }
}

extension KeyedDecodingContainer {
    /// Returns a member, or its default if it is missing or null. Called by code of `@Model`.
    public func value<Member: Decodable>(forKey key: Key, else initial: @autoclosure () -> Member) throws -> Member {
        try decodeIfPresent(Member.self, forKey: key) ?? initial()
    }

    /// Returns an optional member, or its default if it is missing. Called by code of `@Model`.
    public func optional<Member: Decodable>(
        _ type: Member.Type, forKey key: Key, else initial: @autoclosure () -> Member?
    ) throws -> Member? {
        contains(key) ? try decodeIfPresent(type, forKey: key) : initial()
    }
}

/// A value cannot be read as an object of its model. It stays in the store unchanged.
public struct ModelDecodingError: Error, CustomStringConvertible {
    /// The id of the value, with its prefix.
    public let id: ValueID
    /// The version that stored it, if known.
    public let version: VersionID?
    /// The value.
    public let bytes: [UInt8]
    /// The name of the model.
    public let model: String
    /// The member that does not fit, as a JSON pointer; "" for the whole value.
    public let member: String
    /// The reason, with the member that does not fit.
    public let reason: String
    /// The complete message, with what the user can do.
    public var description: String {
        "The value \"\(id)\" cannot be read as \(model): \(reason). It is in the store as it was: give the model a member that takes "
            + "this, or put the value right by StoreCoordinator.save."
    }
}
