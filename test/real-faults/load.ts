/**
 * Users, agents and a code host that go on while things break: sessions are made, worked in, stopped, restarted,
 * deleted and merged, and webhooks are sent until they are answered. The books record their requests and the answers.
 */
import { createHmac } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { Random } from "../simulation/random.ts";
import { TOKEN, type Json } from "../support/service/process-service.ts";
import { Books, type Asked, type Kind } from "./checkers/books.ts";
import { HOOK_SECRET, type FaultyService } from "./installation.ts";
import { WAIT_MS } from "../support/patience.ts";

const USERS = 3;
/** Between two acts of a user, ms: what a boot on two cores can keep up with. */
const PAUSE_MS = { min: 20, max: 300 } as const;
/** Between two deliveries of the sender, ms. */
const DELIVERY_PAUSE_MS = { min: 100, max: 500 } as const;
const REPEATED_SHARE = 0.2;
const AGAIN_MS = 50;
/** A request that takes longer is as good as one without an answer: longer than any fault lasts. */
const REQUEST_TIMEOUT_MS = WAIT_MS;

interface Response {
  readonly status: number;
  readonly json: Json;
}

interface SendOptions {
  readonly body?: Json;
  readonly token?: string;
  /** The node that is asked; where it is left out, the users' own. */
  readonly through?: FaultyService;
}

interface Listed {
  readonly id: string;
  readonly status: string;
}

type Act = (random: Random) => Promise<unknown>;

export class Load {
  readonly books = new Books();
  readonly #service: FaultyService;
  /** Where webhooks go, by turns: every node takes them. */
  readonly #receivers: readonly FaultyService[];
  readonly #seed: number;
  #isOn = false;
  #isOver = false;
  #working = 0;
  #answered = 0;
  #unavailable = 0;
  #resume = Promise.withResolvers<void>();
  readonly #workers: Promise<void>[] = [];

  constructor(service: FaultyService, seed: number, receivers: readonly FaultyService[] = [service]) {
    this.#service = service;
    this.#receivers = receivers;
    this.#seed = seed;
  }

  /** Requests that were answered so far. */
  get answered(): number {
    return this.#answered;
  }

  /** Of those, with 5xx. */
  get unavailable(): number {
    return this.#unavailable;
  }

  /** Begins, or goes on. */
  go(): void {
    this.#isOn = true;
    this.#resume.resolve();
    if (this.#workers.length > 0) return;
    for (let user = 0; user < USERS; user += 1)
      this.#workers.push(this.#work(new Random(this.#seed, `user ${user}`), this.#userAct, PAUSE_MS));
    this.#workers.push(this.#work(new Random(this.#seed, "sender"), this.#deliver, DELIVERY_PAUSE_MS));
  }

  /** Pauses; completes when every request has come to its end. The service must be up, or a delivery never gets its answer. */
  async pause(): Promise<void> {
    if (this.#isOn) this.#resume = Promise.withResolvers<void>();
    this.#isOn = false;
    while (this.#working > 0) await delay(AGAIN_MS);
  }

  /** Ends it permanently. */
  async end(): Promise<void> {
    this.#isOver = true;
    this.#resume.resolve();
    await Promise.all(this.#workers);
  }

  async #work(
    random: Random,
    act: Act,
    pause: { readonly min: number; readonly max: number },
  ): Promise<void> {
    while (!this.#isOver) {
      if (!this.#isOn) await this.#resume.promise;
      else {
        this.#working += 1;
        try {
          await act(random);
        } finally {
          this.#working -= 1;
        }
        await delay(random.between(pause.min, pause.max));
      }
    }
  }

  /** @returns null where no whole answer came. */
  async #send(
    method: string,
    target: string,
    { body, token = TOKEN, through = this.#service }: SendOptions = {},
  ): Promise<Response | null> {
    try {
      const answer = await fetch(`${through.url}${target}`, {
        method,
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await answer.text();
      this.#count(answer.status);
      return { status: answer.status, json: text.startsWith("{") ? (JSON.parse(text) as Json) : {} };
    } catch {
      // Refused, reset, broken off inside the answer, or too late.
      await delay(AGAIN_MS);
      return null;
    }
  }

  #count(status: number): void {
    this.#answered += 1;
    if (status >= 500) this.#unavailable += 1;
  }

  get #project(): string {
    return `/v1/projects/${this.#service.projectId}`;
  }

  /** One of the newest sessions with one of these statuses. */
  async #some(random: Random, statuses: readonly string[], through?: FaultyService): Promise<string | null> {
    const options = through === undefined ? {} : { through };
    const answer = await this.#send("GET", `${this.#project}/sessions?limit=40`, options);
    const sessions = (answer?.json["sessions"] ?? []) as readonly Listed[];
    const fitting = sessions.filter(({ status }) => statuses.includes(status));
    return fitting.length === 0 ? null : (fitting[random.between(0, fitting.length - 1)]?.id ?? null);
  }

  /** Sends a request that the books hold. */
  async #ask(asked: Asked, method: string, target: string, options: SendOptions): Promise<void> {
    const answer = await this.#send(method, target, options);
    asked.ended = this.books.tick();
    // A request without a clear answer may have taken effect.
    asked.answer = answer === null || answer.status >= 500 ? null : answer.status;
    if (answer?.status === 201) asked.sessionId = String(answer.json["id"]);
    if (answer?.status === 202 && asked.kind === "fire") asked.sessionId = String(answer.json["session_id"]);
  }

  /** Stops some running session through another node. */
  async stopThrough(node: FaultyService, random: Random): Promise<void> {
    const id = await this.#some(random, ["running"], node);
    if (id === null) return;
    const target = `${this.#project}/sessions/${id}/stop`;
    await this.#ask(this.books.ask("stop", id), "POST", target, { body: {}, through: node });
  }

  readonly #userAct: Act = (random) => {
    const acts: readonly (readonly [number, Act])[] = [
      [22, this.#create],
      [24, this.#about("stop", "POST", "/stop", ["provisioning", "running", "running"])],
      [8, this.#about("restart", "POST", "/restart", ["stopped", "failed"])],
      [6, this.#about("remove", "DELETE", "", ["provisioning", "running", "stopped", "failed"])],
      [18, this.#push],
      [8, (drawn) => this.#inSandbox(drawn, "scratch")],
      [4, this.#fire],
      [4, this.#merge],
      [6, this.#mint],
    ];
    let place = random.between(
      1,
      acts.reduce((sum, [weight]) => sum + weight, 0),
    );
    const [, act] = acts.find(([weight]) => (place -= weight) <= 0) ?? [0, this.#create];
    return act(random);
  };

  readonly #create: Act = () =>
    this.#ask(this.books.ask("create", null), "POST", `${this.#project}/sessions`, {
      body: { initial_prompt: "work" },
    });

  readonly #fire: Act = () =>
    this.#ask(this.books.ask("fire", null), "POST", `${this.#project}/triggers/hook/fire`, {
      body: { text: "now" },
    });

  #about(kind: Kind, method: string, below: string, statuses: readonly string[]): Act {
    return async (random) => {
      const id = await this.#some(random, statuses);
      if (id === null) return;
      const target = `${this.#project}/sessions/${id}${below}`;
      await this.#ask(this.books.ask(kind, id), method, target, { body: {} });
    };
  }

  /** Has the agent of some running session do something. */
  async #inSandbox(random: Random, what: "push" | "scratch"): Promise<{ id: string; json: Json } | null> {
    const id = await this.#some(random, ["running"]);
    if (id === null) return null;
    const answer = await this.#send("POST", `${this.#project}/sessions/${id}/runtime/${what}`, { body: {} });
    return answer?.status === 200 ? { id, json: answer.json } : null;
  }

  readonly #push: Act = async (random) => {
    const done = await this.#inSandbox(random, "push");
    const commit = done?.json["commit"];
    if (done === null || typeof commit !== "string") return;
    this.books.pushed.set(done.id, [...(this.books.pushed.get(done.id) ?? []), commit]);
  };

  readonly #merge: Act = async (random) => {
    const ids = [...this.books.pushed.keys()];
    const id = ids[random.between(0, Math.max(0, ids.length - 1))];
    if (id === undefined) return;
    const body = { session_id: id, title: `Take ${id}` };
    const opened = await this.#send("POST", `${this.#project}/change-requests`, { body });
    if (opened?.status !== 201) return;
    const number = String(opened.json["number"]);
    await this.#send("POST", `${this.#project}/change-requests/${number}/merge`, { body: {} });
  };

  /** Fetches a git password as the daemon of some running session does. */
  readonly #mint: Act = async (random) => {
    const id = await this.#some(random, ["running"]);
    if (id === null) return;
    const sandbox = await this.#send("GET", `${this.#project}/sessions/${id}/sandbox`);
    if (sandbox?.status !== 200) return;
    const sandboxId = String(sandbox.json["id"]);
    const token = (await this.#service.keyring()).serviceKey(sandboxId);
    const minted = await this.#send("GET", `${this.#project}/git/clone-credential`, { token });
    const auth = minted?.json["auth"] as { readonly password: string } | undefined;
    if (auth !== undefined) this.books.passwords.set(sandboxId, auth.password);
  };

  /** A new delivery, or one that was answered before; sent until there is an answer, as code hosts do. */
  readonly #deliver: Act = async (random) => {
    const known = [...this.books.deliveries.keys()];
    const repeated = random.chance(REPEATED_SHARE) ? known[random.between(0, known.length - 1)] : undefined;
    const id = repeated ?? `delivery-${known.length}`;
    const receiver = this.#receivers[random.between(0, this.#receivers.length - 1)] ?? this.#service;
    const body = JSON.stringify({ ref: "refs/heads/main", id });
    const headers = {
      "x-github-delivery": id,
      "x-hub-signature-256": `sha256=${createHmac("sha256", HOOK_SECRET).update(body).digest("hex")}`,
    };
    const url = `${receiver.url}/v1/webhooks/projects/${this.#service.projectId}/hook`;
    while (!this.#isOver && !(await this.#deliverOnce(id, url, { headers, body }))) await delay(AGAIN_MS);
  };

  /** @returns whether it was accepted, or refused permanently. */
  async #deliverOnce(id: string, url: string, sent: Pick<RequestInit, "headers" | "body">): Promise<boolean> {
    const begun = this.books.tick();
    try {
      const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
      const response = await fetch(url, { method: "POST", signal, ...sent });
      const body = (await response.json()) as Json;
      const answer = { status: response.status, body, begun, ended: this.books.tick() };
      this.#count(response.status);
      this.books.deliveries.set(id, [...(this.books.deliveries.get(id) ?? []), answer]);
      return response.status < 500;
    } catch {
      return false;
    }
  }
}
