/**
 * The order of a run's files. Files with real parts (sandboxes, services, browsers) take long and mostly wait. So they
 * start first, in parallel with files that compute, and do not run alone at the end. Among equals, the times of former
 * runs decide, if they are known, as in vitest.
 */
import { BaseSequencer, type TestSpecification } from "vitest/node";

const REAL_PARTS = /\/test\/(?:sandbox\/local|e2e|simulation|dashboard\/page|daemon|store\/embedded)/;

const isReal = ({ moduleId }: TestSpecification): boolean => REAL_PARTS.test(moduleId);

export class RealPartsFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // oxlint-disable-next-line unicorn/no-array-sort -- vitest's own method, of no array
    const sorted = await super.sort(files);
    return [...sorted.filter(isReal), ...sorted.filter((file) => !isReal(file))];
  }
}
