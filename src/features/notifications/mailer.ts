/**
 * Hands mails to the operator's mail server, without any decision about them.
 *
 *  M1 The connection is made as src/ground/net/dial.ts says. The server is the operator's own, so it may have any address.
 *  M2 A password leaves only over TLS, or to this machine. Without a password, TLS is used if the server offers it.
 *  M3 A mail costs one connection, of which there are few at a time, and ends with its time limit.
 */
import type { Socket } from "node:net";
import * as Effect from "effect/Effect";
import * as Semaphore from "effect/Semaphore";
import type { MailServer, MailSettings } from "../../domain/service/mail-server.ts";
import { cutText, storableText } from "../../domain/text.ts";
import { withoutBrackets } from "../../ground/net/address.ts";
import { dial, type Network } from "../../ground/net/dial.ts";
import { NetFault } from "../../ground/net/fault.ts";
import { thrownText } from "../../ground/thrown.ts";
import type { Mail, SendMail } from "./ports/mailer.ts";
import { ANSWER_KEPT, TRY_TIMEOUT_MS, type TryOutcome } from "./rules/outbound-tries.ts";

/** Servers refuse a sender with many connections. */
const CONNECTIONS = 4;
const CONNECT_MS = 10_000;
/** The length of an encoded word in a header, as the library's own. */
const SUBJECT_WORD = 52;
const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|::1)$/;

export interface MailerOptions extends MailSettings {
  /** From the beginning to the server's answer, in ms. */
  readonly timeoutMs?: number;
  /** Certificates that count beside the usual ones. Tests have their own. */
  readonly ca?: string;
  readonly network?: Network;
}

/** The fields of the library's faults. */
interface Fault {
  readonly code?: unknown;
  readonly command?: unknown;
  readonly response?: unknown;
  readonly responseCode?: unknown;
}

/** A server that refuses this mailbox, or this mail, does so tomorrow, too. Its refusal of the service is the operator's to mend. */
const isAboutTheMail = ({ command, responseCode }: Fault): boolean =>
  (command === "RCPT TO" || command === "DATA") && typeof responseCode === "number" && responseCode >= 500;

const WORDS: Readonly<Record<string, string>> = {
  "RCPT TO": "The mail server refuses the address",
  DATA: "The mail server refuses the mail",
  "MAIL FROM": "The mail server refuses the sender in PLATFORM_MAIL_FROM",
};

const sentence = (error: unknown): string => {
  if (error instanceof NetFault) return `The mail server ${error.why}.`;
  const { code, command, response } = error as Fault;
  const reply = typeof response === "string" ? `: ${response.replaceAll(/\s+/g, " ").trim()}` : "";
  if (code === "EAUTH") return `The mail server refuses the service's user and password${reply || "."}`;
  const words = WORDS[String(command)];
  if (words !== undefined && reply !== "") return words + reply;
  const tls = /:SSL routines:[^:]*:([^:]+)/.exec(thrownText(error))?.[1];
  if (code === "ETLS" || tls !== undefined)
    return `The mail server gives no safe connection: ${tls ?? thrownText(error)}`;
  return `The mail server did not take the mail${reply || `: ${thrownText(error)}`}`;
};

const toOutcome = (error: unknown): Omit<TryOutcome, "tookMs"> => {
  const { response, responseCode } = error as Fault;
  return {
    status: typeof responseCode === "number" ? responseCode : null,
    error: cutText(storableText(sentence(error)), ANSWER_KEPT),
    answer: typeof response === "string" ? cutText(storableText(response), ANSWER_KEPT) : "",
    retryAfterMs: null,
    ...(isAboutTheMail(error as Fault) && { ends: "failed" as const }),
  };
};

/** The library is loaded with the first mail: most processes send none. */
const transportFor = async ({ host, isSecure, login }: MailServer, socket: Socket, ca: string | undefined) =>
  (await import("nodemailer")).createTransport({
    // The library upgrades the connection that it gets.
    getSocket: (_options, callback) => callback(null, { connection: socket }),
    host: withoutBrackets(host),
    secure: isSecure,
    requireTLS: login !== null && !LOOPBACK.test(withoutBrackets(host)), // M2
    tls: ca === undefined ? {} : { ca },
    ...(login !== null && { auth: { user: login.user, pass: login.password } }),
    greetingTimeout: CONNECT_MS,
    socketTimeout: TRY_TIMEOUT_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  });

/** Loaded with the library. It leaves a subject as it is that looks encoded, and readers would decode it. */
const encodedSubject = async (subject: string): Promise<string> =>
  subject.includes("=?")
    ? (await import("nodemailer/lib/mime-funcs")).encodeWord(subject, "B", SUBJECT_WORD)
    : subject;

const senderDomain = (from: string): string => /@([^>]+)/.exec(from)?.[1] ?? "localhost";

type Transport = Awaited<ReturnType<typeof transportFor>>;

/** Uses one connection to the server, which ends with the use or with the signal. */
const withServer = async <A>(
  { server, ca, network }: MailerOptions,
  signal: AbortSignal,
  use: (transport: Transport) => Promise<A>,
): Promise<A> => {
  const allowances = { hosts: "every" } as const;
  const socket = await dial(server, { ...network, allowances, connectMs: CONNECT_MS }); // M1
  const end = (): void => {
    socket.destroy();
  };
  signal.addEventListener("abort", end, { once: true });
  try {
    return await use(await transportFor(server, socket, ca));
  } finally {
    signal.removeEventListener("abort", end);
    end();
  }
};

const handIn = async (
  options: MailerOptions,
  { to, id, subject, text }: Mail,
  signal: AbortSignal,
): Promise<string> => {
  const { response } = await withServer(options, signal, async (transport) =>
    transport.sendMail({
      from: options.from,
      to,
      subject: await encodedSubject(subject),
      text,
      messageId: `<${id}@${senderDomain(options.from)}>`,
      // So that no absence note answers it.
      headers: { "auto-submitted": "auto-generated" },
    }),
  );
  return response;
};

/** Asks the server whether it answers and takes the login. @returns why not; null: it does */
export const examineMailServer = (options: MailerOptions): Effect.Effect<string | null> => {
  const { timeoutMs = TRY_TIMEOUT_MS } = options;
  return Effect.tryPromise({
    try: (signal) => withServer(options, signal, (transport) => transport.verify()),
    catch: sentence,
  }).pipe(
    Effect.timeoutOrElse({ duration: timeoutMs, orElse: () => Effect.fail(late(timeoutMs).error) }),
    Effect.match({ onSuccess: () => null, onFailure: (why) => why }),
  );
};

const late = (timeoutMs: number) => ({
  status: null,
  error: `The mail server did not take the mail within ${timeoutMs / 1000} s.`,
  answer: "",
  retryAfterMs: null,
});

export const makeMailer = (options: MailerOptions): SendMail => {
  const { timeoutMs = TRY_TIMEOUT_MS } = options;
  const places = Semaphore.makeUnsafe(CONNECTIONS);
  return (mail) =>
    Effect.suspend(() => {
      const start = performance.now();
      return Effect.tryPromise({ try: (signal) => handIn(options, mail, signal), catch: toOutcome }).pipe(
        places.withPermits(1),
        Effect.map((response) => ({
          status: 250,
          error: null,
          answer: cutText(storableText(response), ANSWER_KEPT),
          retryAfterMs: null,
        })),
        Effect.timeoutOrElse({ duration: timeoutMs, orElse: () => Effect.fail(late(timeoutMs)) }),
        Effect.catch((outcome) => Effect.succeed(outcome)),
        Effect.map((outcome): TryOutcome => Object.assign(outcome, { tookMs: performance.now() - start })),
      );
    });
};
