/**
 * The outboxes of this page, one for each session to which it sends something. Their messages are in the browser's storage, so that any page of the
 * same person sends them. It uses no document.
 *
 *  P1 A message belongs to the page that keeps it. Once that page is gone, closed, reloaded or crashed, another one takes it over: each page
 *     holds a lock of the browser, and the others wait for it. Without locks, as over plain http, a page takes everything over when it is
 *     opened. Two pages that send the same message do no harm (outbox.ts O1).
 *  P2 A message of another person in this browser is neither sent nor shown, but forgotten.
 *  P3 A message that one page removes, because it left or was taken back, is sent by no other.
 */
import type { ApiError } from "../api/api.ts";
import { keepShared, onShared, readShared } from "../frame/kept.ts";
import { makeId, Outbox, type Sent } from "./outbox.ts";

interface Person {
  readonly id: string;
  readonly name: string;
}

/** As the browser's storage has it. */
interface Unsent extends Omit<Sent, "problem"> {
  /** Of the session in the API. */
  readonly path: string;
  /** Who wrote it. */
  readonly person: string;
  /** Which page has it. */
  readonly page: string;
}

const PREFIX = "unsent ";
const lockName = (page: string): string => `page ${page}`;

interface Around {
  /** Somebody must hear of a refusal that the page of the session does not show. @param path of the session in the API */
  readonly refused: (path: string, error: ApiError) => void;
  /** Null: the browser has none here. */
  readonly locks: LockManager | null;
}

export class Outboxes {
  readonly #around: Around;
  readonly #page = makeId();
  readonly #outboxes = new Map<string, Outbox>();
  /** Pages whose end this one waits for. */
  readonly #awaited = new Set<string>();
  #person: Person | null = null;

  constructor(around: Around) {
    this.#around = around;
    // Until the page ends. It comes before anything that is stored, so before each page that waits for it.
    void around.locks?.request(lockName(this.#page), () => new Promise(() => {}));
    onShared(PREFIX, (id, isKept) => {
      if (!isKept) for (const outbox of this.#outboxes.values()) outbox.forget(id);
      else if (around.locks !== null) this.#look();
    });
  }

  /** That person reads the page. */
  readonly enter = (person: Person): void => {
    if (this.#person?.id === person.id) return;
    this.leave();
    this.#person = person;
    // Her messages of a former stay on this page.
    this.#take(this.#page);
    this.#look();
  };

  /** The reader has left. Her messages stay in the storage. */
  readonly leave = (): void => {
    for (const outbox of this.#outboxes.values()) outbox.end();
    this.#outboxes.clear();
    this.#person = null;
  };

  /** The page hears from the service: nothing waits any longer. */
  readonly heard = (): void => {
    for (const outbox of this.#outboxes.values()) outbox.heard();
  };

  /** @param path of the session in the API */
  readonly at = (path: string): Outbox => {
    const known = this.#outboxes.get(path);
    if (known !== undefined) return known;
    const outbox = new Outbox({
      path,
      me: this.#person?.name ?? "",
      keep: (one) => this.#keep(one, path),
      forget: (id) => keepShared(PREFIX + id, null),
      refused: (error) => this.#around.refused(path, error),
    });
    this.#outboxes.set(path, outbox);
    return outbox;
  };

  #keep({ problem: _problem, ...one }: Sent, path: string): void {
    if (this.#person === null) return;
    const unsent: Unsent = { ...one, path, person: this.#person.id, page: this.#page };
    keepShared(PREFIX + one.id, unsent);
  }

  /** Looks for messages of other pages, and of pages that are gone. */
  #look(): void {
    if (this.#person === null) return;
    for (const { id, person, page } of readShared<Unsent>(PREFIX)) {
      if (person !== this.#person.id) keepShared(PREFIX + id, null);
      else if (page !== this.#page) this.#await(page);
    }
  }

  #await(page: string): void {
    const { locks } = this.#around;
    if (locks === null) this.#take(page);
    if (locks === null || this.#awaited.has(page)) return;
    this.#awaited.add(page);
    void locks.request(lockName(page), () => {
      this.#awaited.delete(page);
      this.#take(page);
    });
  }

  /** Takes over what that page has left. */
  #take(page: string): void {
    if (this.#person === null) return;
    const inOrder = readShared<Unsent>(PREFIX).toSorted((a, b) => a.at.localeCompare(b.at));
    for (const { path, person, page: former, ...one } of inOrder) {
      if (former !== page || person !== this.#person.id) continue;
      const sent: Sent = { ...one, problem: null };
      this.#keep(sent, path);
      this.at(path).add(sent);
    }
  }
}
