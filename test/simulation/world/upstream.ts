/** The server of the projects' connectors: it answers at once, late, with an error or never, and knows what it was asked for. */
import * as Effect from "effect/Effect";
import { readCatalogue } from "../../../src/domain/connector/catalogue.ts";
import type { ServerFault, Servers } from "../../../src/connectors/port.ts";
import type { Boundary } from "./boundary.ts";
import type { Random } from "../random.ts";
import type { Process } from "../time.ts";

export const SLUG = "wiki";
export const TOOL = "publish";
export const UPSTREAM_URL = "https://wiki.example.com/mcp";
export const CONNECTOR = `
[[connectors]]
slug = "${SLUG}"
kind = "mcp"
url = "${UPSTREAM_URL}"
sessions = ["user", "trigger"]
[[connectors.tools]]
match = "*"
policy = "ask"
`;
export const CATALOGUE = readCatalogue(SLUG, [
  { name: TOOL, description: "Publishes a page.", inputSchema: { type: "object" } },
]);

/** A call has this deadline, ms. */
const CALL_MS = 60_000;
/** The slowest answer, ms. */
const SLOWEST_MS = 20_000;
const HANGS = 0.1;
const FAILS = 0.1;
const IS_SLOW = 0.5;

const fault: ServerFault = {
  _tag: "ServerFault",
  why: "closed the connection",
  isUnknown: true,
  status: null,
};

export class Upstream {
  /** How often each page was published. */
  readonly sent = new Map<string, number>();
  /** Called with the page of each call that arrives. */
  onSent: (page: string) => void = () => undefined;
  readonly #boundary: Boundary;
  readonly #random: Random;

  constructor(boundary: Boundary, random: Random) {
    this.#boundary = boundary;
    this.#random = random;
  }

  #answer(page: string): Effect.Effect<Effect.Success<ReturnType<Servers["call"]>>, ServerFault> {
    this.sent.set(page, (this.sent.get(page) ?? 0) + 1);
    this.onSent(page);
    const draw = this.#random.fraction();
    if (draw < HANGS) return Effect.andThen(Effect.sleep(CALL_MS), Effect.fail(fault));
    if (draw < HANGS + FAILS) return Effect.fail(fault);
    const result = {
      content: [{ type: "text", text: `published ${page}` }],
      isError: false,
      status: 200,
    };
    return Effect.as(
      Effect.sleep(this.#random.chance(IS_SLOW) ? this.#random.between(1, SLOWEST_MS) : 0),
      result,
    );
  }

  /** The server as one life of the service reaches it. */
  for(process: Process): Servers {
    const none = Effect.fail(fault);
    return {
      list: () => none,
      document: () => none,
      sessions: null,
      call: (_, { arguments: given }) => {
        const page = String(given["page"]);
        return this.#boundary.around(
          {
            process,
            port: "upstream",
            operation: "call",
            about: page,
            given: [given],
            isTraced: true,
            failure: () => fault,
          },
          Effect.suspend(() => this.#answer(page)),
        );
      },
    };
  }
}
