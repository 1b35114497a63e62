import { storeConformance } from "../conformance/store/store.ts";
import { storeOfFile } from "../support/postgres/postgres.ts";

storeConformance("Postgres", storeOfFile());
