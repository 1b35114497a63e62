/**
 * A mail server on loopback: it speaks as much SMTP as a program that hands mail in needs, with STARTTLS and a login by PLAIN.
 * Its certificate is for `mail.example.org`, and no authority that programs trust has signed it.
 */
import { once } from "node:events";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { createSecureContext, TLSSocket } from "node:tls";

const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgZ+Nwilnj/vYSi3TK
aqBfFTg5x2qS+ma94zbBBT9xxHGhRANCAAQnUWpWNYKPXN5YLGCWLvlA8z7h7BRb
2Lpeiu1oTM4neWotDx8HEmb/i9fXH5v/wDHHVW3iidpNWs+CDHH+n4r1
-----END PRIVATE KEY-----
`;
export const MAIL_CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBqjCCAVCgAwIBAgIUEMzCwk9I6lb3xSFGdqfUyjpmEDUwCgYIKoZIzj0EAwIw
GzEZMBcGA1UEAwwQbWFpbC5leGFtcGxlLm9yZzAgFw0yNjExMzAyMzE0MDlaGA8y
MTI2MTEwNjIzMTQwOVowGzEZMBcGA1UEAwwQbWFpbC5leGFtcGxlLm9yZzBZMBMG
ByqGSM49AgEGCCqGSM49AwEHA0IABCdRalY1go9c3lgsYJYu+UDzPuHsFFvYul6K
7WhMzid5ai0PHwcSZv+L19cfm//AMcdVbeKJ2k1az4IMcf6fivWjcDBuMB0GA1Ud
DgQWBBTls5bLu05wcwoQMc0ME4uUIhejnTAfBgNVHSMEGDAWgBTls5bLu05wcwoQ
Mc0ME4uUIhejnTAbBgNVHREEFDASghBtYWlsLmV4YW1wbGUub3JnMA8GA1UdEwEB
/wQFMAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIhALBTDcjndVDfOwm/vxLoqwAJmax5
8OS2Lh3xacGawaHZAiBJhU10gvI6diRbv+FiEULTa6ZaW8lolwLYNLfXwtOYzA==
-----END CERTIFICATE-----
`;

export interface ReceivedMail {
  readonly from: string;
  readonly to: string;
  /** Headers and body, with lines as they came. */
  readonly text: string;
  readonly isSecure: boolean;
}

export interface MailServerOptions {
  /** Whether it offers STARTTLS. */
  readonly hasTls?: boolean;
  /** The login that it demands. Null: none. */
  readonly login?: { readonly user: string; readonly password: string } | null;
}

const plainLogin = ({ user, password }: NonNullable<MailServerOptions["login"]>): string =>
  Buffer.from(`\0${user}\0${password}`).toString("base64");

export class TestMailServer {
  readonly received: ReceivedMail[] = [];
  /** Every line that clients sent, but those of mails. */
  readonly lines: string[] = [];
  /** A command's reply instead of the usual one, by the beginning of its line, for commands to come. */
  readonly replies = new Map<string, string>();
  readonly #options: Required<MailServerOptions>;
  readonly #sockets = new Set<Socket>();
  readonly #server: Server = createServer((socket) => this.#serve(socket));

  private constructor({ hasTls = false, login = null }: MailServerOptions) {
    this.#options = { hasTls, login };
  }

  static async open(options: MailServerOptions = {}): Promise<TestMailServer> {
    const server = new TestMailServer(options);
    server.#server.listen(0, "127.0.0.1");
    await once(server.#server, "listening");
    return server;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, "close");
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("error", () => undefined);
    socket.write("220 mail.example.org ESMTP\r\n");
    this.#talk(socket, false);
  }

  #talk(socket: Socket, isSecure: boolean): void {
    const reader = createInterface({ input: socket, crlfDelay: Infinity });
    let [from, to, isLoggedIn] = ["", "", this.#options.login === null];
    let mail: string[] | null = null;
    const say = (text: string): void => {
      socket.write(`${text}\r\n`);
    };
    reader.on("line", (line) => {
      if (mail !== null) {
        if (line !== ".") return void mail.push(line);
        const reply = this.replies.get(".");
        if (reply === undefined) this.received.push({ from, to, text: mail.join("\n"), isSecure });
        mail = null;
        return say(reply ?? "250 2.0.0 taken");
      }
      this.lines.push(line);
      const reply = [...this.replies].find(([command]) => line.startsWith(command))?.[1];
      if (reply !== undefined) return say(reply);
      const [command = ""] = line.toUpperCase().split(" ");
      switch (command) {
        case "EHLO":
          return say(this.#greeting(isSecure));
        case "STARTTLS":
          if (!this.#options.hasTls) return say("502 5.5.1 no such command");
          reader.close();
          say("220 2.0.0 go on");
          return this.#secure(socket);
        case "AUTH":
          isLoggedIn =
            this.#options.login !== null && line === `AUTH PLAIN ${plainLogin(this.#options.login)}`;
          return say(isLoggedIn ? "235 2.7.0 welcome" : "535 5.7.8 wrong user or password");
        case "MAIL":
          from = /<(.*)>/.exec(line)?.[1] ?? "";
          return say(isLoggedIn ? "250 2.1.0 go on" : "530 5.7.0 log in first");
        case "RCPT":
          to = /<(.*)>/.exec(line)?.[1] ?? "";
          return say("250 2.1.5 go on");
        case "DATA":
          mail = [];
          return say("354 end with a point");
        default:
          return say("250 2.0.0 done");
      }
    });
  }

  #greeting(isSecure: boolean): string {
    const { hasTls, login } = this.#options;
    return [
      ...(hasTls && !isSecure ? ["250-STARTTLS"] : []),
      ...(login === null ? [] : ["250-AUTH PLAIN"]),
      "250-mail.example.org",
      "250 8BITMIME",
    ].join("\r\n");
  }

  #secure(socket: Socket): void {
    const secured = new TLSSocket(socket, {
      isServer: true,
      secureContext: createSecureContext({ key: KEY, cert: MAIL_CERTIFICATE }),
    });
    secured.on("error", () => undefined);
    this.#talk(secured, true);
  }
}
