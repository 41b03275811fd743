/// What the store remembers of places, to report where bytes that an order to erase names may be: docs/forgetting.md, "Where bytes may be".
extension Exchange {
    /// Notes the place, and the devices that are known to write there.
    /// - Parameters:
    ///   - hasSent: whether this was a send, which cleans the place.
    ///   - areFilesClean: whether all orders that count here for others were followed in its single files; nil: it has none.
    func notePlace(hasSent: Bool, areFilesClean: Bool? = nil) {
        if isBesidePacks { return }
        let told = transport as? any TellingTransport
        let place = NotedPlace(
            .place, transport.description, isForeign: !options.hasNoOtherReaders && transport.isReadByOthers(store),
            keepsDeleted: told?.keepsDeletedFiles ?? false)
        var all = [place]
        for writer in told?.remoteStatus?.writers ?? [] where !writer.isHere {
            var device = NotedPlace(.device, "\(writer.name ?? writer.id), which writes to \(transport.description)")
            device.seen = UInt64(max(0, (writer.lastSeen ?? 0) + Clock.secondsFrom1970To2001))
            all.append(device)
        }
        store.orders.note(all, isCleaned: hasSent ? areFilesClean ?? told?.arePacksClean ?? false : nil)
    }
}

extension Store {
    /// Notes that versions were exchanged with a device directly.
    package func noteDevice(_ name: String, key: [UInt8]) {
        let short = Hex.text(of: Array(key.prefix(4)))
        orders.note([NotedPlace(.device, name.isEmpty ? "the device \(short)" : "\(name) (\(short))")])
    }
}
