"""The reference by topic: which page describes which public name."""

TOPICS: dict[str, tuple[str, str]] = {
    "Servers, clients, ticks": (
        "What a game's loop holds.",
        "Server Client ClientHandle ClientState Tick Inbox Event Connected Disconnected "
        "Reconnecting DisconnectReason SendResult Room Handlers loop ticks Redialler TokenSource "
        "AdmissionHook PriorityHook",
    ),
    "Messages and fields": (
        "Classes of messages, and what a field may hold.",
        "message Message BlockMessage MessageFactory default FieldType bits ranged u8 u16 u32 u64 "
        "u128 i8 i16 i32 i64 f32 f64 press quantized fixed angle flags text wide_text data raw network_id "
        "up_to sparse common vec2 vec3 unit_vector quaternion signed_quaternion transform Vec2 Vec3 "
        "Quaternion Transform converted register Stream Schema",
    ),
    "Protocols and channels": (
        "What both sides must agree on.",
        "Protocol Channel reliable_ordered reliable_unordered unreliable sequenced redundant latest "
        "payload chunks",
    ),
    "Ghosts": (
        "The server's world in every client.",
        "ghost Ghost World ClientWorld GhostArrays GhostSpawned GhostChanged GhostOwned GhostLinked "
        "GhostDespawned Ref Grid Owner Chosen Always Hook initial owner_only except_owner when",
    ),
    "Peers": (
        "Games without a server.",
        "RendezvousServer Relay LanAnnouncement LanSearch LanGame find_lan PortMapping PlayerPath "
        "Peer Player PlayerJoined PlayerLeft MasterChanged Started GameEnded PeerEvent LeaveReason "
        "Migrating HostChanged",
    ),
    "Lockstep": (
        "Commands that all players run in the same turn, and matches that were recorded.",
        "Lockstep Random Recording RecordingError",
    ),
    "Calls": (
        "Functions that the other side runs.",
        "call to_server to_client to_all ServerCall ClientCall Direction Request CallError "
        "CallPendingError CallFailedError CallTimeoutError CallCancelledError",
    ),
    "Time, prediction, hits": (
        "What hides the latency.",
        "Clock Inputs InputColumns InputStatus Prediction Predicted PredictionError WorldView linear "
        "hermite angular slerp step threshold Past Judgement Judgements",
    ),
    "Rollback": (
        "The same game at every player, run ahead on guesses and corrected.",
        "Rollback Advance Save Load PlayerOut Desync SpectatorLost Spectator SyncTest",
    ),
    "Chunks": (
        "Large data, beside the game's messages.",
        "Chunk Transfer IncomingChunk ReceivedChunk ChunkStats Congestion Catalogue Puller Pull "
        "PullHook PullError",
    ),
    "Arrays": (
        "Many messages at once, through the buffer protocol.",
        "Rows dtype row_format pack unpack arena Notifications PacketNotifications Candidates "
        "ChannelSnapshot",
    ),
    "Addresses, keys, tokens": (
        "Who may connect, and where to.",
        "Address AddressLike resolve ConnectToken generate_key client_id",
    ),
    "Statistics and captures": (
        "What a connection does.",
        "ConnectionStats ChannelStats Capture PacketOpener",
    ),
    "Bad networks": (
        "Links that misbehave on purpose, in real and in virtual time.",
        "Conditions Bursts Outages SimulatedNetwork Proxy Link",
    ),
    "Parts to use alone": (
        "For protocols of your own.",
        "Socket BitWriter BitReader BitMeasure sequence_greater sequence_less sequence_distance "
        "SequenceBuffer AckEndpoint PacketStats VirtualConnection ChunkSender ChunkProgress "
        "ChunkReceiver GoodBad",
    ),
    "Errors": (
        "What a caller's mistake raises. What a peer does wrong never raises.",
        "TickwireError ClosedError ConnectFailedError NotConnectedError StaleClientError "
        "ChannelError ChannelFullError MessageTooLargeError UnregisteredMessageError FieldError "
        "FieldTypeError StreamError GhostError SyncTestError",
    ),
}
"""Title of a page: a sentence, and the names of `tickwire` on it, in order."""

MODULES = {
    "tickwire.aio": "asyncio",
    "tickwire.lockstep": "Turns and events of lockstep",
    "tickwire.testing": "Tests in virtual time",
}
"""Public modules beside `tickwire`, each a page: title by name."""


def page(title: str) -> str:
    """The name of a topic's page, in the folder of the reference."""
    return "-".join("".join(letter for letter in title.lower() if letter.isalnum() or letter == " ").split())
