/** `platform login`: by a code that the person types into the page (RFC 8628), or with a token that she has. */
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, sendForm, type Service } from "../client.ts";
import { command } from "../command.ts";
import { checkedToken, configurationFile, parseAddress, writeLogin } from "../configuration.ts";
import { EXIT, Failure, usageFailure } from "../failure.ts";
import type { Input } from "../input.ts";
import { safeLine } from "../terminal.ts";

/** Over plain http, others on the network can read the token. */
const isInTheClear = (apiUrl: string): boolean => {
  const { protocol, hostname: host } = new URL(apiUrl);
  return protocol === "http:" && !/^(?:127\.\d+\.\d+\.\d+|\[::1\]|(?:.+\.)?localhost)$/.test(host);
};

/** The longest name that the service accepts, in characters. */
const NAME_MAX = 100;
const GRANT_TYPE = "urn:ietf:params:oauth:grant-type:device_code";
/** How much longer an OAuth client must wait after `slow_down` (RFC 8628, 3.5). */
const SLOWER_MS = 5000;
/** The wait after a request without an answer. The service may be restarting. */
const AGAIN_MS = 5000;
/** Requests without an answer in a row, after which the command gives up. A code is valid as long. */
const UNANSWERED_MAX = 120;

const refusal = (code: string, message: string) => new Failure(EXIT.unauthorised, code, { message });

/** What the service answered to the start of a login. */
interface Started {
  readonly deviceCode: string;
  readonly userCode: string;
  readonly page: string;
  readonly intervalMs: number;
}

/** Null if the service is older than this command and has no such login. */
const start = async (service: Service): Promise<Started | null> => {
  const client_name = `Command line on ${hostname()}`.slice(0, NAME_MAX);
  const { status, fields } = await sendForm(service, "/device-logins", {
    client_id: "platform",
    client_name,
  });
  if (status === 404 || status === 405) return null;
  const { device_code: device, user_code: code, verification_uri: page, interval } = fields;
  const isWhole = typeof device === "string" && typeof code === "string" && typeof page === "string";
  if (status !== 200 || !isWhole || typeof interval !== "number")
    throw new Failure(status >= 500 ? EXIT.tryAgain : EXIT.refused, "not_the_api", {
      message: `The service could not begin a login (status ${status}).`,
    });
  return {
    deviceCode: device,
    userCode: code,
    page,
    intervalMs: interval * 1000,
  };
};

/** One question for the token. A service that does not respond now may do so later. */
const ask = async (service: Service, device_code: string): Promise<Readonly<Record<string, unknown>>> => {
  try {
    const form = { client_id: "platform", grant_type: GRANT_TYPE, device_code };
    const { status, fields } = await sendForm(service, "/device-logins/token", form);
    return status >= 500 ? { error: "no_answer" } : fields;
  } catch (error) {
    if (error instanceof Failure && error.exit === EXIT.tryAgain) return { error: "no_answer" };
    throw error;
  }
};

/** Asks until the person has decided. */
const awaitToken = async (service: Service, { deviceCode, intervalMs }: Started): Promise<string> => {
  let waitMs = intervalMs;
  for (let misses = 0; misses < UNANSWERED_MAX;) {
    // oxlint-disable no-await-in-loop -- one question after the other
    await sleep(misses === 0 ? waitMs : Math.max(waitMs, AGAIN_MS));
    const { error, access_token: token } = await ask(service, deviceCode);
    // oxlint-enable no-await-in-loop
    if (typeof token === "string") return checkedToken(token, "The service's answer");
    misses = error === "no_answer" ? misses + 1 : 0;
    if (error === "slow_down") waitMs += SLOWER_MS;
    else if (error === "access_denied") throw refusal("denied", "The login was denied on the page.");
    else if (error !== "authorization_pending" && error !== "no_answer")
      throw refusal("login_expired", "The code is no longer valid. Run `platform login` again.");
  }
  throw new Failure(EXIT.tryAgain, "unreachable", {
    message: "The service does not respond. Run `platform login` again.",
  });
};

/** Without a terminal, no person can be asked. */
const nothingToRead = (what: string): Failure =>
  usageFailure(
    `${what} is missing: standard input is not a terminal, and it has no such line. Write a token to it and give --url, ` +
      'for example: echo "$TOKEN" | platform login --url https://platform.example.com. ' +
      "Without a login, set PLATFORM_API_URL and PLATFORM_CLI_TOKEN.",
  );

const readToken = async (input: Input): Promise<string> => {
  const token = (await input.hiddenLine("Token (not shown): ")).trim();
  if (token === "" && !input.isTerminal) throw nothingToRead("The token");
  return checkedToken(token, "The input");
};

export const login = command({
  name: "login",
  about: "Log in to a service, and save its address and a token",
  options: {
    url: { value: "URL", about: "The service's address. Without it, the command asks" },
    "with-token": { about: "Ask for a token that you have, which is not shown" },
  },
  notes: `At a terminal, the command shows a code. Type it into the service's page, where you are signed in, and choose what the command
line may do. In a script, write the address and a token as lines to standard input, the address first unless you give --url. The command
tests the token, then saves both in a file that only you can read: $XDG_CONFIG_HOME/platform/config.json, or ~/.config/platform/config.json.`,
  run: async ({ options, environment, input, note }) => {
    const address = options.url ?? (await input.line("Address of the service: "));
    if (address === "" && !input.isTerminal) throw nothingToRead("The address of the service");
    const apiUrl = parseAddress(address);
    if (apiUrl === null)
      throw usageFailure("The address must be an http or https URL without a user, a query and a fragment.");
    if (isInTheClear(apiUrl)) note("Warning: over http, anyone on the network path can read the token.");
    const service = { apiUrl, environment };
    const loginStart = options["with-token"] || !input.isTerminal ? null : await start(service);
    if (loginStart !== null) {
      note(safeLine(`Open ${loginStart.page} and type the code ${loginStart.userCode}`));
      note("Waiting for your decision there. Ctrl-C ends the command.");
    }
    const token = loginStart === null ? await readToken(input) : await awaitToken(service, loginStart);
    const { value, text } = await new Client({ ...service, token }).call("GET /v1/me", {});
    const file = configurationFile(environment);
    writeLogin(file, { apiUrl, token, isOwn: loginStart !== null });
    note(`Saved in ${file}.`);
    return {
      json: text,
      text: safeLine(`Logged in as ${value.user.name} of the account ${value.account.name}.`),
    };
  },
});
