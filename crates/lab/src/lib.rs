//! Scenario files to runs, results and reports.
