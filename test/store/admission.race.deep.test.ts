import { storeOfFile } from "../support/postgres.ts";
import { admissionRaces } from "./admission.race.ts";

admissionRaces(storeOfFile(), 150);
