/** The suite of every provider, over Pods of a fake cluster that are real processes. */
import { afterAll, describe, it } from "vitest";
import { runCase, sandboxCases } from "../../conformance/sandboxes/sandbox.ts";
import { lacksCluster } from "../../support/requirements.ts";
import { TestCluster } from "./subject.ts";

const cluster = lacksCluster === null ? await TestCluster.open() : null;

describe.skipIf(lacksCluster !== null)(`Pods as sandboxes ${lacksCluster ?? ""}`, () => {
  for (const one of cluster === null ? [] : sandboxCases(cluster.subject())) it(one.name, () => runCase(one));
  afterAll(() => cluster?.close());
});
