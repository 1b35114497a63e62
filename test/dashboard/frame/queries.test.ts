import { beforeEach, describe, expect, it } from "vitest";
import { infiniteQueryOptions, InfiniteQueryObserver } from "@tanstack/react-query";
import { queries } from "../../../dashboard/api/queries.ts";
import { forgetRecent } from "../../../dashboard/frame/kept.ts";

/** A list of three pages with one entry each, and the pages that were read. */
const list = (reads: number[]) =>
  infiniteQueryOptions({
    queryKey: ["list"],
    queryFn: ({ pageParam }) => {
      reads.push(pageParam);
      return Promise.resolve([pageParam]);
    },
    initialPageParam: 0,
    getNextPageParam: ([last = 0]) => (last < 2 ? last + 1 : null),
  });

describe("the answers that pages have read", () => {
  beforeEach(() => queries.clear());

  it("is read again as far as the reader has read it, and only when the frame asks", async () => {
    const reads: number[] = [];
    const options = list(reads);
    await queries.infiniteQuery(options);
    expect(reads).toEqual([0]);
    const observer = new InfiniteQueryObserver(queries, options);
    const leave = observer.subscribe(() => undefined);
    await observer.fetchNextPage();
    expect(reads).toEqual([0, 1]);
    await queries.infiniteQuery(options);
    expect(reads).toEqual([0, 1, 0, 1]);
    leave();
  });

  it("tells the frame why it cannot be read again", async () => {
    const options = list([]);
    await queries.infiniteQuery(options);
    const failing = { ...options, queryFn: () => Promise.reject(new Error("The service does not respond.")) };
    const leave = new InfiniteQueryObserver(queries, failing).subscribe(() => undefined);
    await expect(queries.infiniteQuery(failing)).rejects.toThrow("The service does not respond.");
    leave();
  });

  it("is forgotten when the person signs out", () => {
    queries.setQueryData(["people"], ["Mona"]);
    forgetRecent();
    expect(queries.getQueryData(["people"])).toBeUndefined();
  });
});
