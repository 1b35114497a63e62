/**
 * The time of an answer tells a stranger nothing (threats.md W36). Two kinds of calls are made in random order and
 * their times are compared with Welch's t-test; |t| below 4.5 is the usual bound for "no difference".
 *
 * A slug that listens and one that does not differ by the status that spec.md 7.1 gives each of them, so their times
 * may differ too. Equal answers must have equal times: every 404, and every 401.
 */
import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { signatureKey, verifySignature } from "../../../src/domain/trigger/signature.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";
import { expectStatus, hmac, makeHookProject, SECRET, webhookEntry } from "../../support/service/requests.ts";

const LIMIT = 4.5;
const SEED = 36;
/** Above this share of all times lie collections of garbage and other programs' turns, which are noise for both. */
const KEPT_SHARE = 0.99;
const WARM_UP = 2_000;
/** Comparisons of each kind, in each of three runs: a leak shows in every one, a machine's mood does not. */
const SIGNATURES = 1_000_000;
/** Headers that are made ahead of their comparisons. */
const BATCH = 2_000;
/** Deliveries of each kind. */
const DELIVERIES = 15_000;

/** 0 or 1, evenly, the same in every run. */
const coins = (seed: number): (() => 0 | 1) => {
  let bits: number[] = [];
  let block = 0;
  return () => {
    if (bits.length === 0) {
      const digest = createHash("sha256").update(`${seed}/${block}`).digest();
      bits = [...digest].flatMap((byte) => Array.from({ length: 8 }, (_, bit) => (byte >> bit) & 1));
      block += 1;
    }
    return bits.pop() === 1 ? 1 : 0;
  };
};

interface Moments {
  readonly count: number;
  readonly mean: number;
  readonly variance: number;
}

const moments = (times: Float64Array): Moments => {
  const mean = times.reduce((sum, time) => sum + time, 0) / times.length;
  const squares = times.reduce((sum, time) => sum + (time - mean) ** 2, 0);
  return { count: times.length, mean, variance: squares / (times.length - 1) };
};

/** Welch's t of both kinds' times, without the slowest share of all. */
const welch = (first: Float64Array, second: Float64Array): number => {
  const all = Float64Array.from([...first, ...second]).toSorted();
  const most = all[Math.floor(all.length * KEPT_SHARE)] ?? Number.POSITIVE_INFINITY;
  const [a, b] = [first, second].map((times) => moments(times.filter((time) => time <= most)));
  if (a === undefined || b === undefined) throw new Error("there are two kinds");
  return (a.mean - b.mean) / Math.sqrt(a.variance / a.count + b.variance / b.count);
};

/** The times of two kinds of calls, in nanoseconds. */
class Times {
  readonly #times: readonly [Float64Array, Float64Array];
  readonly #filled: [number, number] = [0, 0];

  /** @param count about how many of each kind; a quarter more fit. */
  constructor(count: number) {
    const size = Math.ceil(count * 1.25);
    this.#times = [new Float64Array(size), new Float64Array(size)];
  }

  add(kind: 0 | 1, nanoseconds: bigint): void {
    this.#times[kind][this.#filled[kind]] = Number(nanoseconds);
    this.#filled[kind] += 1;
  }

  /** Welch's t of both kinds. */
  get t(): number {
    const [first, second] = this.#times;
    return welch(first.subarray(0, this.#filled[0]), second.subarray(0, this.#filled[1]));
  }
}

/** The digest with one digit changed; in one piece, as a header comes: V8 reads pasted text at another speed. */
const wrongAt = (digest: string, index: number): string => {
  const bytes = Buffer.from(digest, "latin1");
  bytes.write(digest[index] === "0" ? "1" : "0", index, "latin1");
  return bytes.toString("latin1");
};

const BODY = '{"action": "opened"}';
const DIGEST = hmac(BODY);
/** The first and the last digit. */
const WRONG_DIGITS = [0, 63] as const;

describe("the comparison of a signature", () => {
  it("takes the same time for a wrong first and a wrong last byte [W36]", () => {
    const key = signatureKey(SECRET);
    if (key === null) throw new Error("the secret is not empty");
    const body = Buffer.from(BODY);
    const draw = coins(SEED);
    // Made again, in the order of the draw: a text's place in memory must not depend on its kind.
    const drawn = () => {
      const kind = draw();
      return { kind, headers: { hub: undefined, platform: wrongAt(DIGEST, WRONG_DIGITS[kind]) } };
    };
    const compare = (): number => {
      const times = new Times(SIGNATURES);
      for (let taken = 0; taken < 2 * SIGNATURES; taken += BATCH) {
        for (const { kind, headers } of Array.from({ length: BATCH }, drawn)) {
          const since = process.hrtime.bigint();
          verifySignature(body, headers, key);
          times.add(kind, process.hrtime.bigint() - since);
        }
      }
      return Math.abs(times.t);
    };
    compare();
    expect(Math.min(compare(), compare(), compare())).toBeLessThan(LIMIT);
  });
});

describe("an answer of the receiver", () => {
  let service: TestService;
  let pid = "";
  beforeAll(async () => {
    service = await startTestService();
    pid = await makeHookProject(
      service,
      `${webhookEntry("push")}${webhookEntry("off", "Go", "enabled = false")}`,
    );
  });
  afterAll(() => service.close());

  /** t of two kinds of deliveries that are both refused with the status, one after the other. */
  const compared = async (
    status: number,
    kinds: readonly [Delivery, Delivery],
    count: number,
  ): Promise<number> => {
    const send = async (kind: 0 | 1) => {
      const { slug, signature } = kinds[kind];
      const answer = await service.request("POST", `/v1/webhooks/projects/${pid}/${slug}`, {
        body: BODY,
        token: null,
        headers: { "x-platform-signature": signature },
      });
      expectStatus(answer, status);
    };
    for (let warm = 0; warm < WARM_UP; warm += 1) await send(warm % 2 === 0 ? 0 : 1);
    const times = new Times(count);
    const draw = coins(SEED);
    for (let sent = 0; sent < 2 * count; sent += 1) {
      const kind = draw();
      const since = process.hrtime.bigint();
      await send(kind);
      times.add(kind, process.hrtime.bigint() - since);
    }
    return Math.abs(times.t);
  };

  it("takes the same time for a wrong first and a wrong last byte [W36]", async () => {
    const kinds = [
      { slug: "push", signature: wrongAt(DIGEST, 0) },
      { slug: "push", signature: wrongAt(DIGEST, 63) },
    ] as const;
    expect(await compared(401, kinds, DELIVERIES)).toBeLessThan(LIMIT);
  });

  it("takes the same time for an unknown slug and a disabled one [W36]", async () => {
    const kinds = [
      { slug: "off", signature: DIGEST },
      { slug: "not", signature: DIGEST },
    ] as const;
    expect(await compared(404, kinds, DELIVERIES)).toBeLessThan(LIMIT);
  });
});

interface Delivery {
  readonly slug: string;
  readonly signature: string;
}
