/**
 * The order of a run's files. What starts real parts (sandboxes, services, browsers) takes long and mostly waits: it
 * begins first, beside what computes, and does not stand alone at the end. Where former runs are remembered their times
 * decide among equals, as vitest does it.
 */
import { BaseSequencer, type TestSpecification } from "vitest/node";

const REAL_PARTS = /\/test\/(?:sandbox\/local|e2e|simulation|dashboard\/page|demo|daemon|store\/embedded)/;

const isReal = ({ moduleId }: TestSpecification): boolean => REAL_PARTS.test(moduleId);

export class RealPartsFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // oxlint-disable-next-line unicorn/no-array-sort -- vitest's own method, of no array
    const sorted = await super.sort(files);
    return [...sorted.filter(isReal), ...sorted.filter((file) => !isReal(file))];
  }
}
