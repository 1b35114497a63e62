/** The port to people's mailboxes: one mail with the server's answer. The adapter is mailer.ts. */
import * as Context from "effect/Context";
import type * as Effect from "effect/Effect";
import type { TryOutcome } from "../rules/outbound-tries.ts";

export interface Mail {
  /** The address of one mailbox. */
  readonly to: string;
  /** The mail's `Message-ID` is made of it. It is the same at each try. */
  readonly id: string;
  readonly subject: string;
  readonly text: string;
}

/** Hands a mail to the operator's server, for at most `TRY_TIMEOUT_MS`. It never fails. */
export type SendMail = (mail: Mail) => Effect.Effect<TryOutcome>;

/** Null if the operator has named no mail server. */
export const Mailer = Context.Reference<SendMail | null>("platform/notifications/Mailer", {
  defaultValue: () => null,
});
