/** The filters of the first page's list, from the address to the API's parameters. */
import { describe, expect, it, test } from "vitest";
import { hasQueued, isNarrowed, listParameters, readFilter } from "../../../dashboard/home/filter.ts";

const of = (query: string) => readFilter(new URLSearchParams(query));

test.each([
  ["", false, { archived: "false" }],
  ["archived=yes", true, { archived: "true" }],
  ["project=p", true, { archived: "false" }],
  ["by=trigger", true, { archived: "false", started_by: "trigger" }],
  ["by=u&search=greet", true, { started_by: "person", created_by: "u", search: "greet" }],
])("the address's query %j", (query, narrowed, parameters) => {
  expect(isNarrowed(of(query))).toBe(narrowed);
  expect(listParameters(of(query))).toEqual(parameters);
});

describe("a request that waits for a free session", () => {
  const waiting = { project_id: "p", title: "Greet in German" };
  it.each([
    ["", true],
    ["project=p&search=german", true],
    ["project=q", false],
    ["search=french", false],
    ["archived=yes", false],
    ["by=trigger", false],
  ])("is in the list with %j: %j", (query, isThere) => {
    expect(hasQueued(of(query), waiting)).toBe(isThere);
  });
});
