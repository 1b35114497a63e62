/** The suite of every provider, over Pods of a fake cluster that are real processes. */
import { afterAll, describe, it } from "vitest";
import { runCase, sandboxCases } from "../../conformance/sandbox.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { TestCluster } from "./subject.ts";

const lacks = !sandboxesStartHere
  ? "(needs bubblewrap)"
  : process.geteuid?.() === 0
    ? null
    : "(needs root, as a node does)";

const cluster = lacks === null ? await TestCluster.open() : null;

describe.skipIf(lacks !== null)(`Pods as sandboxes ${lacks ?? ""}`, () => {
  for (const one of cluster === null ? [] : sandboxCases(cluster.subject())) it(one.name, () => runCase(one));
  afterAll(() => cluster?.close());
});
