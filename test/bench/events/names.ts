/** The table and the channel of the bare server's events, beside the service's own. */
export const TABLE = "bare_events";
export const CHANNEL = "bare_events";
