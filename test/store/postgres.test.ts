import { storeConformance } from "../conformance/store.ts";
import { testStore } from "../support/postgres.ts";

storeConformance("Postgres", testStore);
