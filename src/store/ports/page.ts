/** A page of a list, newest first, and the request for one. */

export interface PageRequest {
  readonly limit: number;
  /** Opaque, from an earlier page. `null`: from the newest. */
  readonly cursor: string | null;
}

export interface Page<A> {
  readonly items: readonly A[];
  readonly nextCursor: string | null;
}
