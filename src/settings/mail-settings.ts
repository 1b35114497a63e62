/** Settings of the mail that tells people of their sessions. */
import { MAIL_FROM_EXPECTED } from "../domain/service/mail-server.ts";
import { define } from "./setting.ts";

export const MAIL_SETTINGS = define({
  PLATFORM_SMTP_URL: {
    group: "Mail",
    kind: "text",
    fallback: null,
    shown: "off: no mail",
    about:
      "The mail server that takes the service's [mail to people](../use/own-notices.md#by-mail-or-in-your-own-chat): `smtp://user:password@host:587` " +
      "(STARTTLS) or `smtps://user:password@host:465`, with percent escapes in user and password. It may have a private address. " +
      "A password is never sent without TLS, except to this machine. Needs `PLATFORM_MAIL_FROM`.",
  },
  PLATFORM_MAIL_FROM: {
    group: "Mail",
    kind: "structured",
    fallback: null,
    expects: MAIL_FROM_EXPECTED,
    about: "The sender of this mail, for example `Platform <platform@example.com>`.",
  },
});
