/**
 * Which daemons this version of the service works with. A sandbox outlives an upgrade of the service, and its daemon stays
 * as it was. Raise `DAEMON_PROTOCOL` with each change of what the service and the daemon say to each other, and
 * `OLDEST_DAEMON_PROTOCOL` if the service no longer works with the older daemons. test/upgrade has recorded exchanges with
 * them.
 */
import * as Schema from "effect/Schema";

/** What this version's daemon reports as `protocol` in its health. */
export const DAEMON_PROTOCOL = 4;
/** A daemon with a lower protocol is too old: its session is saved, stopped, and starts again at its next message. */
export const OLDEST_DAEMON_PROTOCOL = 1;

/** From this protocol on, the service pulls what it saves, and it may do so at any time. */
const PULLED_SAVES_PROTOCOL = 3;

/** Whether the service pulls the saves from a daemon of this protocol. */
export const pullsSaves = (protocol: number | undefined): boolean =>
  protocol !== undefined && protocol >= PULLED_SAVES_PROTOCOL;

/** The part of a health report that daemons of all versions have. */
const AnyHealth = Schema.Struct({
  daemon: Schema.Struct({ version: Schema.String }),
  protocol: Schema.optionalKey(Schema.Finite),
  typed_at: Schema.optionalKey(Schema.Unknown),
});
const decode = Schema.decodeUnknownOption(AnyHealth);

/**
 * The protocol of the daemon that made a health report. Daemons from before protocol 2 do not report it. Those of the
 * baseline of the migrations and later ones have protocol 1, and report when a person last typed. Older ones have 0.
 *
 * @returns null for a text that is no daemon's report
 */
export const daemonProtocol = (report: unknown): number | null => {
  const greeting = decode(report);
  if (greeting._tag === "None") return null;
  const { protocol, typed_at: typedAt } = greeting.value;
  return protocol ?? (typedAt === undefined ? 0 : 1);
};

/** Whether the service does not work with a daemon of this protocol. */
export const isOutdated = (protocol: number): boolean => protocol < OLDEST_DAEMON_PROTOCOL;
